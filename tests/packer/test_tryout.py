"""A destination that can't do what packing needs is refused before anything is packed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packer.convert import convert
from packer.tryout import try_out
from readers import storage
from readers.errors import StorageError
from tests.trees import MemorySource, a_sample


@pytest.fixture(autouse=True)
def _far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_LOCAL", frozenset())
    monkeypatch.setattr(storage, "_MEMORY", frozenset())


def test_a_whole_file_system_will_do_and_nothing_stays(tmp_path: Path) -> None:
    try_out(tmp_path)
    assert not list(tmp_path.iterdir())


def _refusing(call: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - any call
        if when(*args):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        return call(*args, **options)

    return refuse


@pytest.mark.parametrize(
    ("owner", "name", "when", "told"),
    [
        (
            os,
            "pwrite",
            lambda _descriptor, _data, offset: offset == 0,
            "first block of a file last",
        ),
        (Path, "rename", lambda before, _after: before.is_dir(), "rename a directory"),
    ],
)
def test_what_it_cannot_do_is_said_before_anything_is_packed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    owner: object,
    name: str,
    when: Callable[..., bool],
    told: str,
) -> None:
    monkeypatch.setattr(owner, name, _refusing(getattr(owner, name), when))
    with pytest.raises(StorageError, match=told) as caught:
        convert(MemorySource([a_sample(0)], ("x",)), tmp_path / "out", format="webdataset")
    assert "copy the finished dataset" in caught.value.message
    assert not list(tmp_path.iterdir())
