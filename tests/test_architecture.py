"""The shape of the code: who may import what, and that the table of formats is complete."""

from __future__ import annotations

import importlib
import inspect
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import packer
import readers
from packer.protocols import ShardWriter
from readers import errors
from readers.errors import MissingDependencyError, PackError, UnknownFormatError
from readers.registry import FORMATS, FormatEntry, format_entry, load

_ROOT = Path(__file__).parents[1]
_HEAVY = ("lmdb", "h5py", "webdataset", "click", "packer", "torch", "matplotlib", "numba")


def test_the_contracts_of_imports_hold() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    found = shutil.which("lint-imports", path=str(command.parent))
    if found is None:
        pytest.skip("import-linter isn't installed")
    done = subprocess.run(
        [found, "--no-cache"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_a_training_job_loads_the_read_side_alone() -> None:
    code = "import sys, readers; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(_HEAVY) & set(done.stdout.split())


def test_reading_any_format_loads_no_library_of_it(dataset: Path) -> None:
    code = (
        "import sys; from readers import open_dataset\n"
        "with open_dataset(sys.argv[1]) as dataset: dataset[0], dataset.read_many([1])\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(dataset)], capture_output=True, text=True, check=True
    )
    assert not set(_HEAVY) & set(done.stdout.split())


def test_every_format_has_its_modules_and_every_module_its_row() -> None:
    layouts = {entry.layout for entry in FORMATS.values()}
    writers = {entry.writer.partition(":")[0] for entry in FORMATS.values()}
    for package, named in (("readers.layout", layouts), ("packer.formats", writers)):
        folder = _ROOT / package.replace(".", "/")
        found = {f"{package}.{file.stem}" for file in folder.glob("[!_]*.py")}
        assert found == named


def test_the_rows_are_in_order_and_complete() -> None:
    assert list(FORMATS) == sorted(FORMATS)
    for name, entry in FORMATS.items():
        assert entry.name == name
        assert entry.encoded or entry.pixels
        assert (entry.extra is None) == (not entry.needs)
        assert set(entry.shapes_bytes) <= set(entry.needs)
        assert "shard" in entry.stock
        assert "\n" not in entry.summary
        assert len(inspect.getdoc(importlib.import_module(entry.layout)) or "") > 200


@pytest.mark.parametrize("entry", FORMATS.values(), ids=FORMATS)
def test_every_writer_is_one(entry: FormatEntry) -> None:
    for name in entry.needs:
        pytest.importorskip(name)
    writer = load(entry, entry.writer)
    for member in ("size", "write", "finish", "abandon"):
        assert hasattr(writer, member)
        assert hasattr(ShardWriter, member)
    source = inspect.getsource(importlib.import_module(entry.writer.partition(":")[0]))
    assert len(source.splitlines()) < 200


def test_an_unknown_format_is_said_with_the_nearest() -> None:
    with pytest.raises(UnknownFormatError, match="did you mean 'lmdb'"):
        format_entry("lmbd")


def test_a_missing_library_is_said_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = next(entry for entry in FORMATS.values() if entry.needs)
    monkeypatch.setitem(sys.modules, needy.needs[0], None)
    monkeypatch.delitem(sys.modules, needy.writer.partition(":")[0], raising=False)
    with pytest.raises(MissingDependencyError, match=rf"dataset-packer\[{needy.extra}\]"):
        load(needy, needy.writer)


def _tree(kind: type[PackError]) -> list[type[PackError]]:
    return [kind, *(leaf for branch in kind.__subclasses__() for leaf in _tree(branch))]


@pytest.mark.parametrize("kind", _tree(PackError), ids=lambda kind: kind.__name__)
def test_errors_travel_between_processes(kind: type[PackError]) -> None:
    error = kind("what and where", path="p", shard="s", offset=3, key="k")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(copy) is kind
    assert str(copy) == "what and where"
    facts = ("message", "path", "shard", "offset", "key")
    assert [getattr(copy, fact) for fact in facts] == ["what and where", "p", "s", 3, "k"]
    assert kind.__name__ in (inspect.getdoc(errors) or "")


@pytest.mark.parametrize("package", [packer, readers], ids=lambda package: package.__name__)
def test_what_a_package_offers_is_there(package: object) -> None:
    offered = package.__all__  # type: ignore[attr-defined]  # both have it
    assert len(set(offered)) == len(offered)
    assert all(hasattr(package, name) for name in offered)
