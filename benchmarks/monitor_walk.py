"""What a newcomer sees: a stock PyTorch script, one line added, the verdict, and the remedy tried.

`python -m benchmarks.monitor_walk` trains on a folder of JPEGs with PyTorch's own loader, asks
`packer doctor`, follows what it says, and trains again. The result is
`results/monitor_walk.json`; the loop stands for a device that computes for a fixed time a batch.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader

from benchmarks.environment import environment
from benchmarks.result import RESULTS
from benchmarks.tree import made_tree, open_tree
from readers import ImageTransform, open_dataset
from readers.manifest import MANIFEST
from readers.monitor import LoaderMonitor
from readers.monitor.run import read_run
from readers.monitor.summary import summarize
from readers.torch import MapDataset

_FILES: Final = 2000
_SIDE: Final = 256
_CROP: Final = 224
_BATCH: Final = 64
_EPOCHS: Final = 2
_COMPUTE: Final = 0.05
"""Seconds a batch."""
_REMEDIES: Final = {
    "JPEGs of 256 pixels in LMDB": ("--format", "lmdb", "--image", "resize", "--side", str(_SIDE)),
    "decoded pixels": ("--format", "npy", "--size", str(_SIDE)),
}
_FOLDER: Final = "folder of JPEGs"


class Photos:
    """A stock dataset: files of a folder, opened by Pillow."""

    def __init__(self, root: Path) -> None:
        self._paths = open_tree(root).paths
        self.transform = crop

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return self.transform(np.asarray(Image.open(self._paths[index]).convert("RGB")))


def crop(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cuts out a random square, mirrored or not."""
    height, width, _ = pixels.shape
    top, left = random.randint(0, height - _CROP), random.randint(0, width - _CROP)  # noqa: S311 - no secret
    cut = pixels[top : top + _CROP, left : left + _CROP]
    return np.ascontiguousarray(cut[:, ::-1] if random.random() < 1 / 2 else cut)  # noqa: S311 - as above


@click.group()
def main() -> None:
    """Walk the path, or take one of its steps."""


@main.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
def train(data: Path, run: Path) -> None:
    """Train on DATA, a folder or a packed dataset, and leave the RUN."""
    with contextlib.suppress(PermissionError):
        os.nice(-10)  # what else runs here is no part of it
    dataset: Any
    if (data / MANIFEST).exists():
        dataset = MapDataset(open_dataset(data), ImageTransform(crop))
    else:
        dataset = Photos(data)
    loader = DataLoader(dataset, batch_size=_BATCH, shuffle=True, num_workers=2)
    loader = LoaderMonitor(run=run).attach(loader)  # the one line
    for _ in range(_EPOCHS):
        for _ in loader:
            time.sleep(_COMPUTE)


@main.command()
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def walk(rounds: int) -> None:
    """Train, ask, follow, train again; the contestants take turns."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tree = made_tree(place, _FILES).root
        data, commands = {_FOLDER: tree}, {_FOLDER: ""}
        for name, options in _REMEDIES.items():
            data[name] = place / name.replace(" ", "-")
            _packer("convert", str(tree), str(data[name]), *options)
            commands[name] = f"packer convert photos/ photos.{options[1]} {' '.join(options)}"
        for turn in range(rounds):
            for name, path in data.items():
                _run(
                    ["-m", "benchmarks.monitor_walk", "train", str(path), _place(place, name, turn)]
                )
        steps = [
            {"data": name, "command": command} | _figures(place, name, rounds)
            for name, command in commands.items()
        ]
    result = {
        "environment": environment(tree.parent.parent),
        "batch": _BATCH,
        "workers": 2,
        "compute_seconds": _COMPUTE,
        "rounds": rounds,
        "steps": steps,
    }
    (RESULTS / "monitor_walk.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    for step in steps:
        print(json.dumps(step, indent=1))


def _figures(place: Path, name: str, rounds: int) -> dict[str, object]:
    """Gives the medians of the rounds, and what the doctor says of the last one."""
    runs = [_place(place, name, turn) for turn in range(rounds)]
    seen = [summarize(read_run(Path(run))) for run in runs]
    said = json.loads(_packer("doctor", runs[-1], "--json"))
    return {
        "dataset_seconds": median(one.stages["dataset"].p50 for one in seen),
        "transform_seconds": median(one.stages["transform"].p50 for one in seen),
        "wait_share": median(one.wait_share or 0.0 for one in seen),
        "samples_per_second": median(one.samples_per_second or 0.0 for one in seen),
        "verdict": said["verdict"],
        "findings": [
            {key: found[key] for key in ("rule", "severity", "verdict", "remedy", "gain")}
            for found in said["findings"]
        ],
    }


def _place(place: Path, name: str, turn: int) -> str:
    return str(place / f"run-{name.replace(' ', '-')}-{turn}")


def _packer(*arguments: str) -> str:
    return _run(["-c", "from packer.cli import main; main()", *arguments])


def _run(arguments: list[str]) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    main()
