"""The samples of one WebDataset shard, whoever wrote it.

A sample is a run of members that share folder and base name up to its first dot; what follows is
the field, in any case. The image is the one field named by an image suffix (`jpg`, `png` …), or
the one whose last suffix is (`left.jpg`). The label is the text of `cls`, or `label` in the object
of `json`; the rest of that object are extra fields, and so is the text of `txt`. Other fields are
left out and counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from packer.sources.findings import Findings
from packer.sources.image_file import MAX_SIZE
from packer.sources.keys import is_text, key_of
from readers.errors import FormatError, SampleError
from readers.header import IMAGE_SUFFIXES
from readers.layout.webdataset import Member, TarScan, scan_tar
from readers.sample import JsonValue

_MAX_TEXT = 1 << 24
_LABELS = ("cls", "cls.txt")


class TarSample(NamedTuple):
    """Where a sample lies, and all of it but the image."""

    key: str
    name: str
    """Name of the image's member; of the first member where there is no image."""
    offset: int
    size: int
    label: str | None
    extra: dict[str, JsonValue]
    error: str | None
    """Why the sample can't be used; None if it can."""


@dataclass(slots=True)
class _Group:
    """Adjacent members of one sample."""

    key: str
    fields: dict[str, Member] = field(default_factory=dict)
    error: str | None = None
    offset: int = 0

    def add(self, suffix: str, member: Member) -> None:
        if suffix in self.fields:
            self.error = f"has the member {member.name!r} twice"
            self.offset = member.header
        elif not self.fields:
            self.offset = member.header
        self.fields.setdefault(suffix, member)


class TarShard:
    """Goes through the samples of a shard, reading headers, labels and texts only.

    Args:
        read: Returns the bytes at (offset, size).
        size: Bytes of the shard.
        name: Its name, for messages.
        findings: Takes what is odd or left out.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], size: int, name: str, findings: Findings
    ) -> None:
        self._read = read
        self._size = size
        self._name = name
        self._findings = findings
        self._ignored: Counter[str] = Counter()

    def __iter__(self) -> Iterator[TarSample]:
        if not self._size:
            self._findings.note(self._name, "empty file, no archive")
            return
        scan = scan_tar(self._read, self._size)
        for group in self._groups(scan):
            yield self._sample(group)
        self._tell(scan.links)

    def _groups(self, scan: TarScan) -> Iterator[_Group]:
        group: _Group | None = None
        usual: set[str] = set()
        try:
            for member in scan:
                split = self._split(member.name)
                if split is None:
                    continue
                if group is None or group.key != split[0]:
                    if group is not None:
                        yield group
                        usual = set(group.fields)
                    group = _Group(split[0])
                group.add(split[1], member)
        except FormatError as error:
            yield from self._broken(group, usual, scan.broken, error)
            return
        if group is not None:
            yield group
        if not scan.ended:
            self._findings.note(self._name, "lacks the blocks that end an archive", used=True)

    def _broken(
        self, group: _Group | None, usual: set[str], name: str | None, error: FormatError
    ) -> Iterator[_Group]:
        """Says what becomes of the sample that was open when the shard broke off.

        It is whole if the next member is known to be another's, or, where that one's name is lost,
        if it has the fields that the sample before it had; a shard's first has none before it.
        """
        next_one = self._split(name) if name else None
        if group is None or (next_one is None and set(group.fields) == usual):
            whole = True
        else:
            whole = next_one is not None and next_one[0] != group.key
        if group is not None and whole:
            yield group
        offset = error.offset or 0
        key = f"{self._name}@{offset}"
        if next_one is not None:
            key = next_one[0]
        elif group is not None and not whole:
            key = group.key
        fields = {} if group is None or whole else group.fields
        yield _Group(key, fields, f"can't be read: {error}, and all after it is lost", offset)

    def _tell(self, links: int) -> None:
        if links:
            self._findings.note(self._name, f"{links} links or devices, left out")
        for suffix, count in sorted(self._ignored.items()):
            self._findings.note(self._name, f"{count} members .{suffix}, left out")

    def _split(self, name: str) -> tuple[str, str] | None:
        folder, slash, base = name.rpartition("/")
        stem, dot, suffix = base.partition(".")
        if stem and dot:
            raw = f"{folder}{slash}{stem}".encode("utf-8", "surrogateescape")
            return key_of(raw, 0, 0 if is_text(raw) else 1), suffix.lower()
        if base.startswith("._"):
            self._findings.litter += 1
        elif base:
            self._findings.note(f"{self._name}/{name}", "member without key and field, left out")
        return None

    def _sample(self, group: _Group) -> TarSample:
        try:
            if group.error is not None:
                raise self._fault(group, group.error)
            image = self._image(group)
            label, extra = self._texts(group)
        except SampleError as error:
            name = next((member.name for member in group.fields.values()), group.key)
            return TarSample(group.key, name, group.offset, 0, None, {}, str(error))
        return TarSample(group.key, image.name, image.offset, image.size, label, extra, None)

    def _image(self, group: _Group) -> Member:
        names = [name for name in group.fields if f".{name}" in IMAGE_SUFFIXES]
        names = names or [
            name for name in group.fields if f".{name.rpartition('.')[2]}" in IMAGE_SUFFIXES
        ]
        found = ", ".join(group.fields)
        if not names:
            raise self._fault(group, f"lacks an image (its fields: {found})")
        if len(names) > 1:
            raise self._fault(group, f"has several images (its fields: {found})")
        member = group.fields[names[0]]
        if member.size > MAX_SIZE:
            raise self._fault(group, f"has an image of {member.size} bytes, more than {MAX_SIZE}")
        self._ignored.update(group.fields.keys() - {names[0], *_LABELS, "json", "txt"})
        return member

    def _texts(self, group: _Group) -> tuple[str | None, dict[str, JsonValue]]:
        labels = [self._text(group, name) for name in _LABELS if name in group.fields]
        extra = self._object(group) if "json" in group.fields else {}
        inner = extra.get("label")
        if isinstance(inner, (str, int)) and not isinstance(inner, bool):
            labels.append(str(extra.pop("label")))
        labels = [text.strip() for text in labels if text.strip()]
        if len(set(labels)) > 1:
            raise self._fault(group, f"has several labels: {labels}")
        if "txt" in group.fields:
            extra["txt"] = self._text(group, "txt")
        return (labels[0] if labels else None), extra

    def _object(self, group: _Group) -> dict[str, JsonValue]:
        try:
            value = json.loads(self._text(group, "json"))
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise self._fault(group, f"has a damaged json field: {error}") from error
        return value if isinstance(value, dict) else {"json": value}

    def _text(self, group: _Group, name: str) -> str:
        member = group.fields[name]
        if member.size > _MAX_TEXT:
            raise self._fault(group, f"has {member.size} bytes in {name!r}, which is no text")
        try:
            return self._read(member.offset, member.size).decode()
        except UnicodeDecodeError as error:
            raise self._fault(group, f"has no UTF-8 in {name!r}") from error

    def _fault(self, group: _Group, what: str) -> SampleError:
        return SampleError(f"{self._name}: the sample {group.key!r} {what}")
