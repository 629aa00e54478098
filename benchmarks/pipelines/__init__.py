"""Whole paths from stored pictures to training batches: a script for each, ours and others'.

Each is `PYTHON -m benchmarks.pipelines.NAME`, so that it may run under an interpreter of its own,
and does what `benchmarks.pipelines.serving` says. A script needs NumPy and its own library only.
"""
