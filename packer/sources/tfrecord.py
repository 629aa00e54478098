"""`tf.train.Example` records that other tools wrote, read in place; strict about checksums.

The image is the feature `image/encoded` or another customary name, or else the one feature that
holds an image. The label is `image/class/label`, a number or a name, or `image/class/text`; where
both are there, the text names the number. Other features are extra fields: one value as it is,
several as a list; bytes that are no text are left out.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from crc32c import crc32c

from packer.sources.contained import Found
from packer.sources.findings import Findings
from packer.sources.image_file import MAX_SIZE
from readers.errors import CorruptDatasetError
from readers.header import image_type
from readers.layout import tfrecord as layout
from readers.layout.tfrecord import Feature, RecordPlace
from readers.sample import JsonValue

_IMAGES = (
    layout.ENCODED,
    "image",
    "image_raw",
    "image/data",
    "encoded_image",
    "jpg",
    "jpeg",
    "png",
)
_LABELS = (layout.LABEL, "label", "class")
_TEXTS = (layout.TEXT, "class_name", "label_name")
_NAMES = (layout.FILENAME, "filename", "file_name")
_SUPERFLUOUS = (
    *(layout.SOURCE_ID, layout.FORMAT, layout.HEIGHT, layout.WIDTH),
    *("image/channels", "image/colorspace", "image/key/sha256"),
)
"""Features that say what the image says itself."""
_MAX_TEXT = 1 << 24
_MAX_RECORD = MAX_SIZE + (64 << 20)
_MAX_CLASSES = 1 << 20


class TfrecordContainer:
    """A `packer.sources.contained.Container` of TFRecord files."""

    kind = "tfrecord"
    unit = "offset"

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._contradicted: set[int] = set()

    def scan(self, file: Path, findings: Findings) -> Iterator[Found]:
        """Goes through the records of a file, all of whose bytes are held against checksums."""
        ignored: Counter[str] = Counter()
        with _opened(file) as (read, size):
            if not size:
                findings.note(file.name, "empty file, no records", used=True)
            records = layout.scan_records(read, size, crc32c)
            while True:
                try:
                    place = next(records, None)
                except CorruptDatasetError as error:
                    yield _damaged(error.offset or 0, error.message)
                    break
                if place is None:
                    break
                yield self._found(read, place, ignored)
        for name, count in sorted(ignored.items()):
            findings.note(file.name, f"{count} features {name!r} that are no text, left out")

    def read(self, file: Path, place: tuple[int, int]) -> bytes:
        """Reads a record again, checks it again, and gives its image."""
        with _opened(file) as (read, _):
            data = layout.record_data(read, RecordPlace(*place), crc32c)
        features = layout.parse_example(data)
        return bytes(_bytes(features[_image_name(features)]))

    def class_names(self) -> Mapping[int, str]:
        """Gives the names of numbers that always had the same one."""
        return {n: name for n, name in self._names.items() if n not in self._contradicted}

    def _found(
        self, read: Callable[[int, int], bytes], place: RecordPlace, ignored: Counter[str]
    ) -> Found:
        if place.size > _MAX_RECORD:
            return _damaged(place.start, f"a record of {place.size} bytes is no image")
        try:
            features = layout.parse_example(layout.record_data(read, place, crc32c))
            image = _image_name(features)
        except CorruptDatasetError as error:
            return _damaged(place.start, error.message, place.size)
        label = self._label(features)
        key, name = _text(features.get(layout.SOURCE_ID)), _text(_first(features, _NAMES))
        known = {image, *_SUPERFLUOUS, *_NAMES, *_LABELS, *_TEXTS}
        extra: dict[str, JsonValue] = {}
        for field, feature in features.items():
            if field in known or not feature.values:
                continue
            values = _json(feature)
            if values is None:
                ignored[field] += 1
            else:
                extra[field] = values[0] if len(values) == 1 else values
        return Found((place.start, place.size), key, name, label, extra)

    def _label(self, features: Mapping[str, Feature]) -> str | None:
        text = _text(_first(features, _TEXTS))
        feature = _first(features, _LABELS)
        if feature is None or len(feature.values) != 1:
            return text
        if feature.kind == "bytes":
            return _text(feature)
        number = feature.values[0]
        if not isinstance(number, int) or number == -1:
            return None
        if (
            text
            and len(self._names) < _MAX_CLASSES
            and self._names.setdefault(number, text) != text
        ):
            self._contradicted.add(number)
        return str(number)


def begins_like_one(head: bytes) -> bool:
    """Tells whether bytes are the beginning of a record: a length with its checksum."""
    places = layout.scan_records(lambda at, size: head[at : at + size], 1 << 63, crc32c)
    try:
        return next(places, None) is not None
    except CorruptDatasetError:
        return False


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Callable[[int, int], bytes], int]]:
    with file.open("rb", buffering=0) as stream:
        yield partial(_pread, stream.fileno()), os.fstat(stream.fileno()).st_size


def _pread(handle: int, offset: int, size: int) -> bytes:
    data = os.pread(handle, size, offset)
    while len(data) < size and (more := os.pread(handle, size - len(data), offset + len(data))):
        data += more
    return data


def _damaged(offset: int, reason: str, size: int = 0) -> Found:
    return Found((offset, size), None, None, None, {}, reason)


def _image_name(features: Mapping[str, Feature]) -> str:
    """Finds the image.

    Raises:
        CorruptDatasetError: There is none, or several could be it.
    """
    for name in _IMAGES:
        if name in features and features[name].kind == "bytes" and len(features[name].values) == 1:
            return name
    found = [
        name
        for name, feature in features.items()
        if feature.kind == "bytes"
        and len(feature.values) == 1
        and image_type(_bytes(feature)) != "unknown"
    ]
    if len(found) != 1:
        raise CorruptDatasetError(
            f"none of its features is an image (they are {', '.join(sorted(features)) or 'none'})"
            if not found
            else f"several of its features are images: {', '.join(sorted(found))}"
        )
    return found[0]


def _first(features: Mapping[str, Feature], names: tuple[str, ...]) -> Feature | None:
    return next((features[name] for name in names if name in features), None)


def _bytes(feature: Feature) -> memoryview:
    value = feature.values[0]
    return value if isinstance(value, memoryview) else memoryview(b"")


def _text(feature: Feature | None) -> str | None:
    if feature is None or feature.kind != "bytes" or len(feature.values) != 1:
        return None
    data = _bytes(feature)
    return bytes(data).decode("utf-8", "surrogateescape") if 0 < len(data) <= _MAX_TEXT else None


def _json(feature: Feature) -> list[JsonValue] | None:
    """Gives values as JSON has them; None for bytes that are no text."""
    values: list[JsonValue] = []
    for value in feature.values:
        if isinstance(value, memoryview):
            try:
                values.append(bytes(value).decode())
            except UnicodeDecodeError:
                return None
            if len(value) > _MAX_TEXT:
                return None
        elif isinstance(value, float):
            values.append(value if math.isfinite(value) else None)
        else:
            values.append(value)
    return values
