"""manifest.json: what a dataset says of itself.

It is written last, so a directory with a valid manifest is a complete dataset. It holds no time,
host, user or absolute path: the same source and options give the same bytes. Its last member,
`checksum`, is the XXH3-128 of all the text before the comma that leads to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, get_args

from readers.checksum import digest
from readers.errors import CorruptDatasetError, UnsupportedVersionError
from readers.sample import JsonValue
from readers.yuv import Color

MANIFEST = "manifest.json"
INDEX = "index.arrow"
SEGMENTS = "segments.arrow"
VERSION = 1
"""Version of the manifest and the index that this library writes, and the newest it reads."""

_SEALED = re.compile(rb'(.*),\n "checksum": "([0-9a-f]{32})"\n\}\n', re.DOTALL)
_LARGEST = (1 << 63) - 1
_NOT_PACKED = {"skipped", "left out"}
_OPTIONS = {"image", "shuffle", "max_pixels", "on_error"}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the dataset."""

    name: str
    bytes: int
    checksum: str
    """As in `readers.checksum.file_checksum`."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file with images that can be read by itself, and its companions."""

    samples: int
    files: tuple[File, ...]
    """The first one holds the images."""

    @property
    def name(self) -> str:
        """Name of the file that holds the images."""
        return self.files[0].name

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of the source that isn't as it should be."""

    path: str
    action: str
    """`skipped`: bad, not in the dataset; `kept`: bad, in it untouched; `noted`: in it, though odd;
    `left out`: no sample at all."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a dataset says of itself."""

    format: str
    version: int
    """Version of the format; see its layout's docstring."""
    reader_version: int
    """Oldest `VERSION` of this library that reads the dataset."""
    packer_version: str
    plan: str
    """Fingerprint of source, options and versions; equal plans give equal datasets."""
    samples: int
    classes: tuple[str, ...]
    """In the order of the labels; empty without labels."""
    fields: Mapping[str, str]
    """Type of each extra field: `bool`, `int`, `float`, `string` or `json`."""
    pixels: bool
    """Whether images are stored as pixels rather than as encoded files."""
    shape: tuple[int, int, int] | None
    """(height, width, 3) where all images are pixels of one size."""
    shards: tuple[Shard, ...]
    index: File
    types: Mapping[str, int]
    """Number of images by content type."""
    decoders: Mapping[str, int]
    """Number of images by the library that decoded them while packing."""
    libraries: Mapping[str, str]
    """Versions of the libraries that the bytes depend on."""
    options: Mapping[str, JsonValue]
    """The options that the content depends on, image policy included."""
    source: Mapping[str, JsonValue]
    """Kind and fingerprint of the source, and what was left out of it."""
    ledger: tuple[Skipped, ...]
    """Every file that was skipped, kept although it is bad, or remarkable."""
    color: Color = "rgb"
    """What pixels are: `rgb`, or `yuv420`, see `readers.yuv`; for `rgb` no member of the text."""
    segments: File | None = None
    """Restart segments of rewritten JPEGs, see `readers.segments`; None where there are none, and
    then no member of the text."""

    @property
    def bytes(self) -> int:
        """Size of all files but the manifest."""
        tables = self.index.bytes + (0 if self.segments is None else self.segments.bytes)
        return sum(shard.bytes for shard in self.shards) + tables

    @property
    def fingerprint(self) -> str:
        """Names the samples, for whoever packs them again: images, keys, labels, fields, order."""
        content = [self.index.checksum, self.classes, list(self.fields.items())]
        if self.segments is not None:
            content.append(self.segments.checksum)
        return digest(json.dumps(content).encode()).hex()

    @property
    def not_packed(self) -> tuple[Skipped, ...]:
        """What was left out of the source."""
        return tuple(item for item in self.ledger if item.action in _NOT_PACKED)

    def to_json(self) -> str:
        """Serializes it; the same manifest always gives the same text."""
        facts = asdict(self)
        if self.segments is None:
            del facts["segments"]
        if self.color == "rgb":
            del facts["color"]
        body = json.dumps(facts, indent=1, ensure_ascii=True).removesuffix("\n}")
        return f'{body},\n "checksum": "{digest(body.encode()).hex()}"\n}}\n'


def parse_manifest(text: bytes, path: Path) -> Manifest:
    """Parses and validates a manifest.

    Args:
        text: Content of the file.
        path: Where it lies, for the messages.

    Raises:
        UnsupportedVersionError: A newer version wrote it.
        CorruptDatasetError: It isn't a valid manifest.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _corrupt(path, f"it is no JSON: {error}") from error
    if not isinstance(raw, dict):
        raise _corrupt(path, "it holds no JSON object")
    needed = raw.get("reader_version")
    if isinstance(needed, int) and needed > VERSION:
        raise UnsupportedVersionError(
            f"{path.parent} needs a reader of version {needed}, this library reads up to "
            f"{VERSION}: upgrade dataset-packer",
            path=str(path.parent),
        )
    sealed = _SEALED.fullmatch(text)
    if sealed is None or digest(sealed[1]).hex().encode() != sealed[2]:
        raise _corrupt(path, "its text doesn't match its checksum")
    try:
        return _parse(raw)
    except (KeyError, TypeError, ValueError) as error:
        raise _corrupt(path, f"{type(error).__name__}: {error}") from error


def _corrupt(path: Path, reason: str) -> CorruptDatasetError:
    return CorruptDatasetError(
        f"{path} is damaged: {reason}; restore it or pack the dataset again", path=str(path)
    )


def _parse(raw: Mapping[str, Any]) -> Manifest:
    shards = tuple(
        Shard(_count(item["samples"]), tuple(_file(file) for file in _list(item["files"])))
        for item in _list(raw["shards"])
    )
    if any(not shard.files for shard in shards):
        raise ValueError("a shard without files")
    shape = raw["shape"]
    manifest = Manifest(
        format=_text(raw["format"]),
        version=_count(raw["version"]),
        reader_version=_count(raw["reader_version"]),
        packer_version=_text(raw["packer_version"]),
        plan=_text(raw["plan"]),
        samples=_count(raw["samples"]),
        classes=tuple(_text(name) for name in _list(raw["classes"])),
        fields={_text(name): _text(kind) for name, kind in _mapping(raw["fields"]).items()},
        pixels=_flag(raw["pixels"]),
        shape=None if shape is None else _shape(shape),
        shards=shards,
        index=_file(raw["index"]),
        types=_counts(raw["types"]),
        decoders=_counts(raw["decoders"]),
        libraries={_text(name): _text(v) for name, v in _mapping(raw["libraries"]).items()},
        options=_mapping(raw["options"]),
        source=_mapping(raw["source"]),
        ledger=tuple(
            Skipped(_text(item["path"]), _text(item["action"]), _text(item["reason"]))
            for item in _list(raw["ledger"])
        ),
        color=_color(raw.get("color", "rgb")),
        segments=_file(raw["segments"]) if "segments" in raw else None,
    )
    held = sum(shard.samples for shard in shards)
    if held != manifest.samples:
        raise ValueError(f"the shards hold {held} samples, not {manifest.samples}")
    if len(set(manifest.classes)) < len(manifest.classes):
        raise ValueError("two classes have one name")
    "".join(manifest.classes).encode()
    if not manifest.options.keys() >= _OPTIONS or not isinstance(manifest.options["image"], dict):
        raise ValueError(f"the options lack some of {', '.join(sorted(_OPTIONS))}")
    return manifest


def _color(value: object) -> Color:
    if value not in get_args(Color):
        raise ValueError(f"{value!r} is no colour of pixels")
    return cast("Color", value)


def _file(raw: Mapping[str, Any]) -> File:
    name = _text(raw["name"])
    if name in {"", ".", ".."} or "/" in name or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is no plain file name")
    return File(name, _count(raw["bytes"]), _text(raw["checksum"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {value!r}")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise TypeError(f"expected a number from 0 to 2**63 - 1, found {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {value!r}")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {value!r}")
    return value


def _counts(value: object) -> Mapping[str, int]:
    return {name: _count(count) for name, count in _mapping(value).items()}


def _shape(value: object) -> tuple[int, int, int]:
    height, width, channels = (_count(size) for size in _list(value))
    return height, width, channels
