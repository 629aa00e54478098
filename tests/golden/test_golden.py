"""Datasets that were packed once, by a version that was current then, are read for ever."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from packer.verify import verify
from readers.opening import open_dataset
from readers.registry import FORMATS
from readers.sample import Sample
from tests.trees import image_bytes

_HERE = Path(__file__).parent
_GOLDEN = sorted(path.parent for path in _HERE.glob("*/manifest.json"))


def _shape(sample: Sample) -> list[int] | None:
    return [*sample.image.shape] if isinstance(sample.image, np.ndarray) else None


@pytest.mark.parametrize("path", _GOLDEN, ids=lambda path: path.name)
def test_it_reads_as_ever(path: Path) -> None:
    wanted = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
    for copy in (True, False):
        with open_dataset(path, copy=copy) as dataset:
            assert dataset.classes == ("ant", "bee")
            assert [
                {
                    "key": sample.key,
                    "path": sample.path,
                    "label": sample.label,
                    "extra": dict(sample.extra),
                    "sha256": hashlib.sha256(image_bytes(sample)).hexdigest(),
                    "shape": _shape(sample),
                    **({} if sample.segments is None else {"segments": sample.segments.tolist()}),
                }
                for sample in dataset
            ] == wanted
    assert verify(path).faults == []


def test_every_format_has_one_of_its_version_for_each_kind_of_content() -> None:
    wanted = {
        f"{entry.name}-{kind}-v{entry.version}"
        for entry in FORMATS.values()
        for kind, held in (
            ("files", entry.encoded),
            ("fixed", entry.pixels),
            ("pixels", entry.pixels),
        )
        if held
    }
    wanted.add("webdataset-region-v1")  # restart segments are the same in every format
    assert wanted <= {path.name for path in _GOLDEN}
    for path in _GOLDEN:
        assert sum(file.stat().st_size for file in path.iterdir()) < 40_000


def test_none_is_made_anew() -> None:
    name = _GOLDEN[0].name.rpartition("-")[0]
    done = subprocess.run(
        [sys.executable, _HERE / "make.py", name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "exists" in done.stderr
