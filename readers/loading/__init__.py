"""How `readers.loader` makes batches: transforms, columns, workers, passes."""
