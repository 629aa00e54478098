"""Our readers in our loader, with JPEGs always decoded at full size, as others do."""

from __future__ import annotations

from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.ours import open_loader
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task


def batches(task: Task) -> Batches:
    """Reads the dataset."""
    return endless(open_loader(task, reducing_gap=None))


if __name__ == "__main__":
    serve(batches, libraries=("dataset-packer", "simplejpeg", "pillow", "opencv-python-headless"))
