"""What several test files use."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from packer.cli import main
from packer.convert import convert
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from tests.trees import PACKINGS, PLAIN, REGION, Packing, odd_files, write_tree

COMMAND = (sys.executable, "-c", "from packer.cli import main; main()")
"""Starts the `packer` command of this interpreter."""


one_format = pytest.mark.parametrize("format", [PLAIN], ids=str, indirect=True, scope="session")
"""For what is the same in all formats: a test runs for one of them."""


class Result(NamedTuple):
    """What a run of the command gave."""

    status: int
    out: str
    err: str


Run = Callable[..., Result]


def _require(packing: Packing) -> None:
    """Skips a format whose library isn't installed, or fails if all have to be here."""
    needs = (*packing.entry.needs, *(("numba",) if packing.region else ()))
    missing = [name for name in needs if find_spec(name) is None]
    if missing and os.environ.get("PACKER_ALL_FORMATS") == "1":
        pytest.fail(f"{missing} must be installed")
    if missing:
        pytest.skip(f"{missing} aren't installed")


@pytest.fixture(params=(*PACKINGS, REGION), ids=str, scope="session")
def format(request: pytest.FixtureRequest) -> Packing:
    """Each format with each kind of content that it holds."""
    packing = request.param
    assert isinstance(packing, Packing)
    _require(packing)
    return packing


@pytest.fixture(scope="session")
def odd() -> dict[str, bytes]:
    """The files of `tree`, by path."""
    return odd_files()


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, odd: dict[str, bytes]) -> Path:
    """A folder of good images with odd names; not to be changed."""
    root = write_tree(tmp_path_factory.mktemp("source") / "tree", odd)
    (root / "empty class").mkdir()
    return root


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory, tree: Path, format: Packing) -> Path:
    """`tree` packed into several shards; not to be changed."""
    path = tmp_path_factory.mktemp("packed") / str(format)
    options = ConvertOptions(image=format.policy, shard_samples=8, workers=2)
    convert(open_source(tree), path, format=format.name, options=options)
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs the command in this process."""
    terminate = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["packer", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        status = end.value.code
        assert status is None or isinstance(status, int)
        return Result(status or 0, out, err)

    yield run
    signal.signal(signal.SIGTERM, terminate)
