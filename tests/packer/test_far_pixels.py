from __future__ import annotations

from pathlib import Path

import pytest

from readers.access import Access, Choice
from readers.dataset import Dataset
from readers.probe import Probe
from readers.storage import Storage
from readers.survey import Survey
from tests.conftest import Run
from tests.trees import plain_files, write_tree


@pytest.mark.parametrize("image", ["decode", "keep"])
@pytest.mark.parametrize("kind", ["network", "local"])
def test_pixels_on_network_storage_are_warned_of_with_its_bandwidth(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, image: str, kind: str
) -> None:
    tree = write_tree(tmp_path / "tree", plain_files(4))
    format = "npy" if image == "decode" else "webdataset"
    assert run("convert", tree, tmp_path / "o", "--format", format).status == 0
    probe = Probe(latency=1e-3, requests=16, gain=9, bandwidth=200e6, gap=1 << 18, nbytes=1 << 20)
    storage = Storage(kind=kind, file_system="nfs4")  # type: ignore[arg-type]
    found = Survey(storage, probe, Choice(Access(method="pread"), "it is far"))
    monkeypatch.setattr(Dataset, "survey", lambda _: found)
    out = run("inspect", tmp_path / "o").out
    warned = "pixels on network storage" in out and "200 MB/s were measured" in out
    assert warned == (image == "decode" and kind == "network")
    assert ("readers.PixelCache" in out) == warned
