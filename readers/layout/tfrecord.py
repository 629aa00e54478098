"""TFRecord: one `tf.train.Example` a sample, both checksums of every record.

Source: https://www.tensorflow.org/tutorials/load_data/tfrecord for the framing, `example.proto` and
`feature.proto` of TensorFlow for the messages, https://protobuf.dev/programming-guides/encoding for
their bytes. All integers of the framing are little-endian.

::

    record     length u64, checksum of these 8 bytes u32, Example, checksum of the Example u32
    checksum   CRC-32C (RFC 3720), rotated right by 15 bits, plus 0xa282ead8, modulo 2**32
    Example    1: Features { 1 (repeated): entry { 1: name, 2: Feature } }
    Feature    1: bytes { 1: value }, 2: floats { 1: packed f32 }, or 3: integers { 1: packed i64 }

An Example has, in this order:

=====================  ===========================================================================
`image/filename`       path of the source, bytes
`image/source_id`      the sample's key, UTF-8
`image/format`         type by content, such as `jpeg` or `png`
`image/height`         rows as stored, 0 where unknown
`image/width`          columns as stored, 0 where unknown
`image/class/label`    the label, -1 without one; in datasets with labels only
`image/class/text`     name of the class, empty without a label; in datasets with labels only
the extra fields       under their own names, `field/NAME` where that begins with `image/` or
                       `field/`: `bool` and `int` as integers, `float` as a float of 32 bits (the
                       dataset's index has all 64), `string` as UTF-8, `json` as its text; null is
                       left out
`image/encoded`        the file's bytes, contiguous, the last thing before the record's checksum
=====================  ===========================================================================

Beside each shard lies `NAME.tfrecord.idx`: a line a record, its offset and its length with all of
its framing, as the `tfrecord` package and DALI take it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from readers.checksum import Buffer
from readers.errors import CorruptDatasetError

SUFFIX = ".tfrecord"
INDEX_SUFFIX = ".tfrecord.idx"

FILENAME, SOURCE_ID, FORMAT = "image/filename", "image/source_id", "image/format"
HEIGHT, WIDTH = "image/height", "image/width"
LABEL, TEXT = "image/class/label", "image/class/text"
ENCODED = "image/encoded"

MAX_IMAGE = (1 << 31) - (1 << 20)
"""Bytes of the largest image: what protobuf allows of a message, less room for the rest of it."""

HEAD = 12
"""Bytes of a record before its data."""
_FOOT = 4

_MASK_DELTA = 0xA282EAD8
_U32, _U64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LARGEST_VARINT = 10
_VALUE = b"\x0a"
"""Tag of field 1, length-delimited: of the first value of any list, and of all entries."""

_length = struct.Struct("<Q")
_checksum = struct.Struct("<I")
_float = struct.Struct("<f")

Crc32c = Callable[[Buffer, int], int]
"""Continues the CRC-32C of what came before over more bytes; 0 for nothing before."""

Value = bytes | int | float


def masked(crc: int) -> int:
    """Turns a CRC-32C into the checksum of a record."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _U32


def feature_name(field: str) -> str:
    """Gives the name under which an extra field is stored."""
    return f"field/{field}" if field.startswith(("image/", "field/")) else field


def entry(name: str, value: Value) -> bytes:
    """Renders a feature with its name: bytes, an integer of 64 bits, or a float."""
    if isinstance(value, int):
        feature = b"\x1a" + _sized(_VALUE + _sized(_varint(value & _U64)))
    elif isinstance(value, float):
        feature = b"\x12" + _sized(_VALUE + _sized(_float32(value)))
    else:
        feature = _VALUE + _sized(_VALUE + _sized(value))
    return _VALUE + _sized(_name(name) + b"\x12" + _sized(feature))


def record_head(entries: bytes, image: int, crc: Crc32c) -> bytes:
    """Renders all of a record that comes before its image.

    Args:
        entries: The other features, see `entry`.
        image: Bytes of the image.
        crc: Makes checksums.
    """
    values = _VALUE + _varint(image)
    feature = _VALUE + _varint(len(values) + image) + values
    named = _name(ENCODED) + b"\x12" + _varint(len(feature) + image) + feature
    last = _VALUE + _varint(len(named) + image) + named
    features = len(entries) + len(last) + image
    example = _VALUE + _varint(features) + entries + last
    length = _length.pack(len(example) + image)
    return length + _checksum.pack(masked(crc(length, 0))) + example


def record_foot(head: bytes, image: Buffer, crc: Crc32c) -> bytes:
    """Renders what comes after the image: the checksum of head and image."""
    return _checksum.pack(masked(crc(image, crc(memoryview(head)[HEAD:], 0))))


def index_line(offset: int, length: int) -> bytes:
    """Renders a line of the index file."""
    return b"%d %d\n" % (offset, length)


@lru_cache(maxsize=1024)
def _name(name: str) -> bytes:
    return _VALUE + _sized(name.encode())


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(value: int) -> bytes:
    if value < 0x80:  # noqa: PLR2004 - the bit that says that more follow
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _float32(value: float) -> bytes:
    try:
        return _float.pack(value)
    except OverflowError:
        return _float.pack(math.copysign(math.inf, value))


class RecordPlace(NamedTuple):
    """Where a record lies whose length has proved right."""

    start: int
    """Offset of the record."""
    size: int
    """Bytes of its data."""

    @property
    def data(self) -> int:
        """Offset of its data."""
        return self.start + HEAD


def scan_records(
    read: Callable[[int, int], bytes], size: int, crc: Crc32c
) -> Iterator[RecordPlace]:
    """Walks through the records of a file, reading their lengths only.

    Args:
        read: Returns the bytes at (offset, size); fewer where the file ends.
        size: Bytes of the file.
        crc: Makes checksums.

    Yields:
        The records in order.

    Raises:
        CorruptDatasetError: The file is cut, or a length doesn't match its checksum. Such a length
            isn't used: nothing after it can be found.
    """
    start = 0
    while start < size:
        head = read(start, HEAD) if size - start >= HEAD else b""
        if len(head) != HEAD:
            raise _damage("the file breaks off within the length of a record", start)
        length = _length.unpack_from(head)[0]
        if _checksum.unpack_from(head, 8)[0] != masked(crc(head[:8], 0)):
            raise _damage("the length of a record doesn't match its checksum", start)
        missing = start + HEAD + length + _FOOT - size
        if missing > 0:
            raise _damage(
                f"the file breaks off within a record, which lacks {missing} of its "
                f"{length + HEAD + _FOOT} bytes",
                start,
            )
        yield RecordPlace(start, length)
        start += HEAD + length + _FOOT


def record_data(read: Callable[[int, int], bytes], place: RecordPlace, crc: Crc32c) -> memoryview:
    """Reads the data of a record and holds it against its checksum.

    Raises:
        CorruptDatasetError: It doesn't match, or the file has become shorter.
    """
    raw = memoryview(read(place.data, place.size + _FOOT))
    data = raw[: place.size]
    if len(raw) != place.size + _FOOT:
        raise _damage("the file breaks off within a record", place.start)
    if _checksum.unpack(raw[place.size :])[0] != masked(crc(data, 0)):
        raise _damage("the data of a record doesn't match its checksum", place.start)
    return data


class Feature(NamedTuple):
    """The values of a feature, in Python's types."""

    kind: str
    """`bytes`, `float`, `int`, or `none` for an empty feature."""
    values: list[memoryview] | list[float] | list[int]


def parse_example(data: memoryview) -> dict[str, Feature]:
    """Parses an Example, whoever wrote it; nothing is copied.

    Unknown fields are passed over, and of entries with one name the last one counts, as protobuf
    has it.

    Raises:
        CorruptDatasetError: It is no Example; `offset` counts from its start.
    """
    features: dict[str, Feature] = {}
    for number, value in _fields(data, 0, len(data)):
        if number != 1 or not isinstance(value, slice):
            continue
        for inner, span in _fields(data, value.start, value.stop):
            if inner == 1 and isinstance(span, slice):
                name, feature = _entry(data, span)
                features[name] = feature
    return features


def _entry(data: memoryview, span: slice) -> tuple[str, Feature]:
    name, feature = b"", Feature("none", [])
    for number, value in _fields(data, span.start, span.stop):
        if number == 1 and isinstance(value, slice):
            name = bytes(data[value])
        elif number == 2 and isinstance(value, slice):  # noqa: PLR2004 - a map's value
            feature = _feature(data, value)
    try:
        return name.decode(), feature
    except UnicodeDecodeError as error:
        raise _damage("the name of a feature is no UTF-8", span.start) from error


def _feature(data: memoryview, span: slice) -> Feature:
    feature = Feature("none", [])
    for number, value in _fields(data, span.start, span.stop):
        if not isinstance(value, slice):
            continue
        if number == 1:
            found = [
                data[one]
                for n, one in _fields(data, value.start, value.stop)
                if n == 1 and isinstance(one, slice)
            ]
            feature = Feature("bytes", found)
        elif number == 2:  # noqa: PLR2004 - FloatList
            feature = Feature("float", _floats(data, value))
        elif number == 3:  # noqa: PLR2004 - Int64List
            feature = Feature("int", _ints(data, value))
    return feature


def _floats(data: memoryview, span: slice) -> list[float]:
    values: list[float] = []
    for number, value in _fields(data, span.start, span.stop):
        if number != 1:
            continue
        if isinstance(value, slice):
            if (value.stop - value.start) % _float.size:
                raise _damage("a list of floats breaks off", value.start)
            values += (one for (one,) in _float.iter_unpack(data[value]))
        else:
            values.append(_float.unpack(_checksum.pack(value & _U32))[0])
    return values


def _ints(data: memoryview, span: slice) -> list[int]:
    values: list[int] = []
    for number, value in _fields(data, span.start, span.stop):
        if number != 1:
            continue
        if isinstance(value, slice):
            at = value.start
            while at < value.stop:
                one, at = _read_varint(data, at, value.stop)
                values.append(_signed(one))
        else:
            values.append(_signed(value))
    return values


def _fields(data: memoryview, start: int, stop: int) -> Iterator[tuple[int, slice | int]]:
    """Walks through the fields of a message: their number, and where they lie or what they say."""
    at = start
    while at < stop:
        tag, at = _read_varint(data, at, stop)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at, stop)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _read_varint(data, at, stop)
        elif kind in {_FIXED32, _FIXED64}:
            size = 4 if kind == _FIXED32 else 8
        else:
            raise _damage(f"no message of protobuf: a field of the wire type {kind}", at)
        if size > stop - at:
            raise _damage("a field leaves its message", at)
        if kind == _BYTES:
            yield tag >> 3, slice(at, at + size)
        else:
            yield tag >> 3, int.from_bytes(data[at : at + size], "little")
        at += size


def _read_varint(data: memoryview, at: int, stop: int) -> tuple[int, int]:
    value = 0
    for position in range(_LARGEST_VARINT):
        if at >= stop:
            raise _damage("a number breaks off", at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return value & _U64, at
    raise _damage("a number of more than ten bytes", at)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _damage(what: str, offset: int) -> CorruptDatasetError:
    return CorruptDatasetError(f"{what} (offset {offset})", offset=offset)
