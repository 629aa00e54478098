"""webdataset: shards, a shuffle buffer, batches made in the workers, as its manual shows."""

from __future__ import annotations

from pathlib import Path

import webdataset

from benchmarks.pipelines.folder import list_folder
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from benchmarks.pipelines.torchvision_augment import AugmentBytes

_SHARDS = 16
_BUFFER = 1000


def prepare(folder: str, output: str) -> None:
    """Writes shards, the pictures in random order as the manual recommends."""
    Path(output).mkdir()
    files = list_folder(folder)
    for shard in range(_SHARDS):
        with webdataset.TarWriter(f"{output}/{shard:03}.tar") as writer:
            for number in range(shard, len(files), _SHARDS):
                path, label = files[number]
                data = Path(path).read_bytes()
                writer.write({"__key__": f"{number:08}", "jpg": data, "cls": label})


def batches(task: Task) -> Batches:
    """Reads the shards, one or the other again and again."""
    shards = sorted(map(str, Path(task.source).glob("*.tar")))
    dataset = (
        webdataset.WebDataset(shards, resampled=True)
        .shuffle(_BUFFER)
        .to_tuple("jpg", "cls")
        .map_tuple(AugmentBytes(task), int)
        .batched(task.batch, partial=False)
    )
    return iter(webdataset.WebLoader(dataset, batch_size=None, num_workers=task.workers))


if __name__ == "__main__":
    serve(batches, prepare, ("webdataset", "torchvision", "torch", "pillow"))
