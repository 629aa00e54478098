"""The monitor in an unmodified MegEngine DataLoader, whose last wheel is for Python 3.10."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from readers.monitor.record import UNKNOWN
from readers.monitor.recording import load_recording
from tests.planted import BATCH, BATCHES, agree

PYTHON = os.environ.get("PACKER_MEGENGINE_PYTHON")
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="PACKER_MEGENGINE_PYTHON names no Python 3.10 with MegEngine"
)

SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
from megengine.data import Collator, DataLoader, SequentialSampler, StreamSampler
from megengine.data.dataset import Dataset, StreamDataset
from megengine.data.transform import Transform
from readers.monitor import LoaderMonitor
from tests.planted import BATCH, SAMPLES, pause

class Samples(Dataset):
    def __init__(self): pass
    def __len__(self): return SAMPLES
    def __getitem__(self, index): return index, pause(0.003)

class Stream(StreamDataset):
    def __init__(self): pass
    def __iter__(self): return (Samples()[index] for index in range(2 * BATCH))

class Timed(Transform):
    def apply(self, sample): return *sample, pause(0.002)

class Collating(Collator):
    def apply(self, samples):
        took = pause(0.006)
        times = np.array(samples)
        return np.array([times[0, 0] // BATCH, *times[:, 1:].sum(0), took])

def main(kind, workers, run):
    parallel = kind == "parallel stream"
    data = Samples() if kind == "map" else Stream()
    sampler = SequentialSampler(data, batch_size=BATCH) if kind == "map" else StreamSampler(BATCH)
    loader = DataLoader(data, sampler, Timed(), Collating(), workers, parallel_stream=parallel)
    before = dict(vars(loader))
    monitor = LoaderMonitor(run=Path(run))
    attached = monitor.attach(loader)
    delivered = [[batch.tolist() for batch in attached] for _ in range(2)]
    failures = monitor.failures
    monitor.detach(attached)
    monitor.close()
    assert vars(loader) == before
    said = {"delivered": delivered, "failures": failures}
    Path(run, "said.json").write_text(json.dumps(said))

for kind, workers in json.loads(sys.argv[1]):
    main(kind, workers, f"{sys.argv[2]}/{kind} {workers}")
"""
KINDS = [("map", 0), ("map", 2), ("parallel stream", 2), ("stream", 2)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run of each kind and what it said of itself."""
    assert PYTHON is not None
    place = tmp_path_factory.mktemp("runs")
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", SCRIPT, json.dumps(KINDS), str(place)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.parametrize(("kind", "workers"), KINDS)
def test_stages_are_those_planted(runs: Path, kind: str, workers: int) -> None:
    run = runs / f"{kind} {workers}"
    said = json.loads((run / "said.json").read_text())
    recording = load_recording(run / "recording.jsonl")
    assert (said["failures"], recording.lost) == (0, 0)
    planted = sorted(batch for epoch in said["delivered"] for batch in epoch)
    measured = sorted(recording.batches, key=lambda record: record.began)
    batches = {"map": BATCHES, "parallel stream": 4, "stream": 2}[kind]
    assert len(planted) == len(measured) == 2 * batches
    assert sum(record.samples for record in measured) == 2 * batches * BATCH
    assert {record.worker for record in measured} == (set(range(workers)) or {UNKNOWN})
    for stage, column in (("dataset", 1), ("transform", 2), ("collate", 3)):
        times = sorted(getattr(record, stage) for record in measured)
        main_process_reads = (kind, stage) == ("stream", "dataset")
        expected = sorted(0 if main_process_reads else batch[column] for batch in planted)
        assert agree(times, expected)
    if kind == "map":
        by_number = {(record.epoch, record.batch): record for record in measured}
        for epoch, delivered in enumerate(said["delivered"]):
            numbers, *stages = zip(*delivered, strict=True)
            records = [by_number[epoch, number] for number in numbers]
            for stage, true in zip(("dataset", "transform", "collate"), stages, strict=True):
                assert agree([getattr(record, stage) for record in records], true)
        assert [step.batch for step in recording.steps] == 2 * list(range(BATCHES))
