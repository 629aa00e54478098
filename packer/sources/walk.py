"""The walk through a folder tree: in which order, what is passed over, which links are followed.

A folder's files come before its sub-folders, both sorted by the bytes of their names, which for
UTF-8 is the order of code points; so the order depends on neither locale nor file system.

Passed over and counted: what operating systems and editors leave behind. Passed over and named:
files that start with a dot, folders that start with `.`, `__` or `@` (`.ipynb_checkpoints`,
`__MACOSX`, `@eaDir`), pipes, sockets and devices, dead links. A link to a file counts as a file. A
link to a folder is followed and named, unless it leads to a folder above itself, or to one that a
link was followed to before. A folder's own links come before those deeper down.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from packer.sources.findings import Findings
from packer.sources.keys import distinct_keys, image_suffix_size, key_of, text_of
from readers.errors import SourceError

_Identity: TypeAlias = "tuple[int, int]"

_LITTER = re.compile(
    rb"""
    \._.* | \.ds_store | \.localized | icon\r                       # macOS
    | (ehthumbs(_vista)?|thumbs)\.db | desktop\.ini                 # Windows
    | \.directory | \.nfs[0-9a-f]+ | \.fuse_hidden.* | \.~lock\..*  # Linux
    | .*~ | .*\.sw[a-p] | .*\.(tmp|part|partial|filepart|crdownload)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_NO_CLASS = (b".", b"__", b"@")
_FOLLOWED = "link to a folder, followed"
_DEAD = {
    errno.ENOENT: "dead link",
    errno.ENOTDIR: "dead link",
    errno.ELOOP: "link that leads to itself",
}


class Folder(NamedTuple):
    """A folder of the tree."""

    path: bytes
    """Relative to the root, with a `/` at its end; empty for the root."""
    key: str
    """The same as part of a key."""
    files: list[bytes]
    """Names of the files, sorted."""
    folders: dict[bytes, str]
    """Names of the sub-folders, sorted, with the part of a key that each stands for."""


@dataclass(frozen=True, slots=True)
class _Step:
    path: bytes
    key: str
    above: frozenset[_Identity]


@dataclass(slots=True)
class _Walk:
    root: bytes
    findings: Findings
    allowed: Collection[str]
    followed: set[_Identity] = field(default_factory=set)
    odd: list[tuple[bytes, str]] = field(default_factory=list)
    """Names and reasons to note, of the folder that is being listed."""

    def visit(self, step: _Step) -> tuple[Folder, frozenset[_Identity]] | None:
        """Lists a folder; None where it lies above itself."""
        try:
            status = os.stat(self.root + step.path)  # noqa: PTH116 - bytes
            identity = (status.st_dev, status.st_ino)
            if identity in step.above:
                self.findings.note(text_of(step.path), "leads back to a folder above it, left out")
                return None
            above = step.above | {identity}
            files, folders = self._list(step.path, above)
        except OSError as error:
            place = text_of(self.root + step.path)
            raise SourceError(
                f"the folder {place!r} can't be listed: {error.strerror}", path=place
            ) from error
        # The system lists in any order; the report shan't depend on it.
        for name, reason in sorted(self.odd):
            self.findings.note(text_of(step.path + name), reason, used=reason == _FOLLOWED)
        self.odd.clear()
        files.sort()
        folders.sort()
        escapes = distinct_keys(folders)[1]
        parts = [key_of(name, 0, times) for name, times in zip(folders, escapes, strict=True)]
        return Folder(step.path, step.key, files, dict(zip(folders, parts, strict=True))), above

    def _list(self, path: bytes, above: frozenset[_Identity]) -> tuple[list[bytes], list[bytes]]:
        files: list[bytes] = []
        folders: list[bytes] = []
        links: list[bytes] = []
        with os.scandir(self.root + path) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_file(follow_symlinks=False):
                    if self._is_wanted(name):
                        files.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    if self._is_class(path, name):
                        folders.append(name)
                elif entry.is_symlink():
                    links.append(name)
                elif self._is_wanted(name):
                    self._note(name, "no regular file, left out")
        for name in sorted(links):
            self._follow(path, name, above, files, folders)
        return files, folders

    def _is_wanted(self, name: bytes) -> bool:
        hidden = name.startswith(b".")
        if not hidden and image_suffix_size(name):
            return True
        if _LITTER.fullmatch(name):
            self.findings.litter += 1
            return False
        if hidden:
            self._note(name, "starts with a dot, left out")
        return not hidden

    def _is_class(self, path: bytes, name: bytes) -> bool:
        if not name.startswith(_NO_CLASS) or (not path and text_of(name) in self.allowed):
            return True
        self._note(name, "folder that is no class by its name, left out")
        return False

    def _follow(
        self,
        path: bytes,
        name: bytes,
        above: frozenset[_Identity],
        files: list[bytes],
        folders: list[bytes],
    ) -> None:
        try:
            status = os.stat(self.root + path + name)  # noqa: PTH116 - bytes
        except OSError as error:
            if error.errno in _DEAD:
                self._note(name, f"{_DEAD[error.errno]}, left out")
            elif self._is_wanted(name):
                files.append(name)
            return
        if stat.S_ISREG(status.st_mode):
            if self._is_wanted(name):
                files.append(name)
        elif not stat.S_ISDIR(status.st_mode):
            self._note(name, "link to no regular file, left out")
        elif self._is_class(path, name) and self._is_new(name, status, above):
            folders.append(name)

    def _is_new(self, name: bytes, status: os.stat_result, above: frozenset[_Identity]) -> bool:
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            self._note(name, "link to a folder above it, left out")
            return False
        if identity in self.followed:
            self._note(name, "link to a folder that another link leads to, left out")
            return False
        self.followed.add(identity)
        self._note(name, _FOLLOWED)
        return True

    def _note(self, name: bytes, reason: str) -> None:
        self.odd.append((name, reason))


def walk(root: bytes, findings: Findings, *, allowed: Collection[str] = ()) -> Iterator[Folder]:
    """Walks through a tree, the root first, one folder's names in memory at a time.

    Args:
        root: The folder, absolute, with a `/` at its end.
        findings: Takes what is passed over.
        allowed: Names of sub-folders of the root that are wanted whatever they start with.

    Raises:
        SourceError: A folder can't be listed.
    """
    here = _Walk(root, findings, allowed)
    stack = [_Step(b"", "", _identities_above(root))]
    while stack:
        step = stack.pop()
        visited = here.visit(step)
        if visited is None:
            continue
        folder, above = visited
        yield folder
        stack.extend(
            _Step(step.path + name + b"/", f"{step.key}{part}/", above)
            for name, part in reversed(folder.folders.items())
        )


def _identities_above(root: bytes) -> frozenset[_Identity]:
    found = set()
    for parent in Path(os.fsdecode(root)).resolve().parents:
        # Where the root can't be reached, listing it says so.
        with suppress(OSError):
            status = parent.stat()
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)
