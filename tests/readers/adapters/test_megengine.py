"""Our readers in MegEngine's own loader, which lives in Python 3.10 at the newest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from packer.convert import convert
from tests.trees import MemorySource, a_sample, jpeg

_ROOT = Path(__file__).parents[3]
_PYTHON = os.environ.get("PACKER_MEGENGINE_PYTHON", "")
_ROWS = 37
_SCRIPT = """
import json, sys
import numpy as np
from megengine.data import DataLoader, RandomSampler, SequentialSampler
from megengine.data.sampler import StreamSampler
from readers.decode import decode
from readers.draws import current_draws
from readers.loader import MonitoredLoader
from readers.loading.transform import ImageTransform
from readers.megengine import MapDataset, StreamDataset
from readers.opening import open_dataset

def corner(pixels):
    return pixels[:8, :8]

def draw(value):
    return np.array(current_draws().below(1 << 60))

if __name__ == "__main__":
    photos = open_dataset(sys.argv[1])
    found = {}
    wanted = np.stack([corner(decode(sample.image)) for sample in photos])
    dataset = MapDataset(photos, ImageTransform(corner))
    for workers in (0, 2):
        sampler = SequentialSampler(dataset, batch_size=5)
        batches = list(DataLoader(dataset, sampler=sampler, num_workers=workers))
        images = np.concatenate([images for images, _ in batches])
        labels = np.concatenate([labels for _, labels in batches])
        found[f"map {workers}"] = [bool(np.array_equal(images, wanted)), labels.tolist()]
    for parallel in (False, True):
        stream = StreamDataset(list(range(100)), lambda value: np.array(value), shuffle=True)
        loader = DataLoader(
            stream, sampler=StreamSampler(batch_size=4), num_workers=2, parallel_stream=parallel
        )
        # Without parallel_stream MegEngine's loader leaves out a last batch that isn't full.
        found[f"stream {parallel}"] = sorted(int(value) for batch in loader for value in batch)
    for told in (True, False):
        for workers in (0, 2):
            dataset = MapDataset(list(range(40)), draw, seed=3)
            loader = DataLoader(
                dataset, sampler=SequentialSampler(dataset, batch_size=4), num_workers=workers
            )
            epochs = []
            for epoch in range(2):
                if told:
                    dataset.set_epoch(epoch)
                epochs.append([int(number) for batch in loader for number in batch])
            found[f"draws {told} {workers}"] = epochs
    own = [labels for _, labels in MonitoredLoader(photos, 5, transform=ImageTransform(corner))]
    found["own"] = np.concatenate(own).tolist()
    print(json.dumps(found))
"""

pytestmark = pytest.mark.skipif(
    not _PYTHON, reason="PACKER_MEGENGINE_PYTHON names no Python with MegEngine"
)


def test_it_works_in_megengines_loader(tmp_path: Path) -> None:
    samples = [
        a_sample(number, f"k/{number}", jpeg(number))._replace(label=number % 3)
        for number in range(_ROWS)
    ]
    convert(MemorySource(samples, tuple("abc")), tmp_path / "packed", format="webdataset")
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [_PYTHON, script, tmp_path / "packed"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    labels = [sample.label for sample in samples]
    assert found["map 0"] == found["map 2"] == [True, labels]
    assert found["stream False"] == found["stream True"] == list(range(100))
    assert found["own"] == labels
    assert found["draws True 0"] == found["draws True 2"]
    for told in (True, False):
        for workers in (0, 2):
            epochs = found[f"draws {told} {workers}"]
            assert len({*epochs[0], *epochs[1]}) == 80
