"""The framing and the messages of TFRecord, against the reference and against damage."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import CorruptDatasetError
from readers.layout import tfrecord as layout

crc32c = pytest.importorskip("crc32c").crc32c

_FIELDS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.binary(max_size=200) | st.integers(-(2**63), 2**63 - 1) | st.floats(width=32),
    max_size=5,
)


def record(entries: dict[str, layout.Value], image: bytes) -> bytes:
    rendered = b"".join(layout.entry(name, value) for name, value in entries.items())
    head = layout.record_head(rendered, len(image), crc32c)
    return head + image + layout.record_foot(head, image, crc32c)


def reading(data: bytes) -> Callable[[int, int], bytes]:
    """Reads as from a file, and fails where more is asked for than there is."""

    def read(offset: int, size: int) -> bytes:
        assert 0 <= size <= len(data)
        return data[offset : offset + size]

    return read


def parsed(data: bytes) -> list[dict[str, layout.Feature]]:
    read = reading(data)
    places = layout.scan_records(read, len(data), crc32c)
    return [layout.parse_example(layout.record_data(read, place, crc32c)) for place in places]


def test_a_checksum_is_that_of_the_reference() -> None:
    # The first 12 bytes of every event file of TensorBoard.
    head = b'\x18\0\0\0\0\0\0\0\xa3\x7fK"'
    assert layout.masked(crc32c(head[:8], 0)) == int.from_bytes(head[8:], "little")


@given(st.lists(st.tuples(_FIELDS, st.binary(max_size=300) | st.just(bytes(20_000))), max_size=4))
def test_what_is_written_is_parsed(records: list[tuple[dict[str, layout.Value], bytes]]) -> None:
    data = b"".join(record(fields, image) for fields, image in records)
    for (fields, image), found in zip(records, parsed(data), strict=True):
        values: dict[str, object] = {name: held.values[0] for name, held in found.items()}
        assert values.pop(layout.ENCODED) == image
        assert {n: v for n, v in values.items() if v == v} == {  # noqa: PLR0124 - no nan
            n: v
            for n, v in fields.items()
            if v == v and n != layout.ENCODED  # noqa: PLR0124 - no nan
        }


@settings(deadline=None)
@given(st.lists(_FIELDS, min_size=1, max_size=3))
def test_protobuf_reads_the_same(records: list[dict[str, layout.Value]]) -> None:
    example_pb2 = pytest.importorskip("tfrecord.example_pb2")
    for fields in records:
        data = record(fields, b"\xff\xd8")
        example = example_pb2.Example()
        example.ParseFromString(data[12:-4])
        for name, value in fields.items():
            feature = example.features.feature[name]
            held = getattr(feature, feature.WhichOneof("kind")).value
            assert len(held) == 1
            assert held[0] == value or value != value or name == layout.ENCODED  # noqa: PLR0124
        again = layout.parse_example(memoryview(example.SerializeToString()))
        assert again.keys() == {*fields, layout.ENCODED}


def test_what_others_write_is_parsed() -> None:
    example_pb2 = pytest.importorskip("tfrecord.example_pb2")
    example = example_pb2.Example()
    features = example.features.feature
    features["many"].int64_list.value.extend([1, -2, 3])
    features["floats"].float_list.value.extend([0.5, 1.5])
    features["none"].CopyFrom(example_pb2.Feature())
    features["texts"].bytes_list.value.extend([b"a", b""])
    found = layout.parse_example(memoryview(example.SerializeToString()))
    assert {name: (kind, [*values]) for name, (kind, values) in found.items()} == {
        "many": ("int", [1, -2, 3]),
        "floats": ("float", [0.5, 1.5]),
        "none": ("none", []),
        "texts": ("bytes", [b"a", b""]),
    }
    # The lists of proto2 are not packed: a tag before each value.
    unpacked = b"\x0a\x0d\x0a\x0b\x0a\x01n\x12\x06\x1a\x04\x08\x05\x08\x07"
    assert layout.parse_example(memoryview(unpacked))["n"].values == [5, 7]
    unpacked = b"\x0a\x0e\x0a\x0c\x0a\x01n\x12\x07\x12\x05\x0d" + struct.pack("<f", 2.5)
    assert layout.parse_example(memoryview(unpacked))["n"].values == [2.5]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_damage_is_passed_over(data: st.DataObject) -> None:
    whole = [record({"n": n, "s": b"text"}, bytes(40)) for n in range(3)]
    damaged = bytearray(b"".join(whole))
    bit = data.draw(st.integers(0, len(damaged) * 8 - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    hit = bit // 8 // len(whole[0])
    read = reading(bytes(damaged))
    good = 0
    with pytest.raises(CorruptDatasetError) as found:  # noqa: PT012 - what came before counts
        for place in layout.scan_records(read, len(damaged), crc32c):
            layout.record_data(read, place, crc32c)
            good += 1
    assert good == hit
    assert found.value.offset == hit * len(whole[0])


@given(st.integers(1, 200))
def test_every_cut_is_told(cut: int) -> None:
    data = b"".join(record({"n": n}, bytes(40)) for n in range(3))
    size = len(data) // 3
    end = max(0, len(data) - cut)
    if end % size == 0:
        assert len(parsed(data[:end])) == end // size
        return
    with pytest.raises(CorruptDatasetError, match="breaks off") as found:
        parsed(data[:end])
    assert found.value.offset == end // size * size


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_no_message_does_more_than_be_refused(data: st.DataObject) -> None:
    example = bytearray(record({"n": 7, "f": 0.5, "s": b"text"}, bytes(9))[12:-4])
    for _ in range(data.draw(st.integers(1, 4))):
        example[data.draw(st.integers(0, len(example) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptDatasetError):
        found = layout.parse_example(memoryview(bytes(example)))
        assert all(len(values) <= len(example) for _, values in found.values())
