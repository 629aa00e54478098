"""Read side: opens packed datasets for training."""
