"""Cuts out of a JPEG the part that covers a rectangle, without decoding anything.

Between two restart markers (RST0 to RST7) the coded pixels of a JPEG stand for themselves: the
predictions of Huffman coding begin anew after each (ITU-T T.81, F.2.1.3.1). Where their interval
divides a row of MCUs, the segments form a grid of equal cells, and the cells of any rectangle,
under a header with its height and width, are a JPEG of their own, which any decoder turns into the
pixels that the whole has there.

All but its borders: where chroma is subsampled, libjpeg-turbo's "fancy" upsampling blends each
sample with its neighbours (`jdsample.c`). So a cut holds one sample more than the rectangle needs,
and is never so narrow that the library would leave the blending out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from readers.errors import CorruptDatasetError
from readers.header import Encoded, ImageHeader
from readers.rectangle import Rectangle

_BLOCK = 8
"""Height and width of a block of coefficients, in samples."""
_SEQUENTIAL = (0xC0, 0xC1)
"""Frames in Huffman code whose scans hold all bits: baseline, and extended sequential."""
_CUTTABLE = (1, 3)
"""Numbers of components of the JPEGs that are cut: gray, and three colours."""
_MARKER_SIZE = 2
_PREFIX, _STUFFED, _RST0, _EOI = 0xFF, 0x00, 0xD0, 0xD9
_RESTART_CODES: NDArray[np.uint8] = np.tile(np.arange(_RST0, _RST0 + 8, dtype=np.uint8), 128)
"""Long enough for most pictures."""
_RESTART_MARKERS: NDArray[np.uint16] = np.stack(
    (np.full_like(_RESTART_CODES, _PREFIX), _RESTART_CODES), axis=1
).view(np.uint16)[:, 0]
"""The same as the two bytes of each marker, in the order of the file."""
_END_MARKER = np.array([_PREFIX, _EOI], np.uint8).view(np.uint16)[0]
_ALL_RESTARTS = np.uint8(0xF8)
"""The bits that all codes of restart markers have in common."""
_LEAST_BLENDED = 3
"""Samples in a row from which on `jdsample.c` blends."""

_Number = TypeVar("_Number", np.uint8, np.uint16)


class Cut(NamedTuple):
    """A JPEG that was cut out of another."""

    data: bytearray
    place: Rectangle
    """Where its pixels lie in the whole picture, as stored."""


@dataclass(frozen=True, slots=True)
class Axis:
    """How the segments of a JPEG lie in one direction."""

    pixels: int
    """Of the picture."""
    cell: int
    """Pixels of a segment; the last one may have fewer."""
    ratio: int
    """Pixels for which the coarsest component has one sample."""

    @property
    def count(self) -> int:
        """Segments."""
        return -(-self.pixels // self.cell)

    def size(self, first: int, end: int) -> int:
        """Gives the pixels of some of the segments."""
        return min(end * self.cell, self.pixels) - first * self.cell

    def choose(self, start: int, length: int, scale: int) -> tuple[int, int]:
        """Chooses the segments that pixels need: the first, and the one after the last."""
        context = least = 0
        if self.ratio > 1:
            context = self.ratio * scale
            least = (_LEAST_BLENDED - 1) * context + 1
        if scale > 1:
            # Sizes below a block's may be the same at the next larger scale, and by the size that
            # comes out is how TurboJPEG's interface is told the scale.
            least = max(least, _BLOCK)
        first = max(0, start - context) // self.cell
        end = -(-min(self.pixels, start + length + context) // self.cell)
        while self.size(first, end) < least and (first, end) != (0, self.count):
            first, end = max(0, first - 1), end if first else end + 1
        return first, end


class _Frame(NamedTuple):
    """What a JPEG's header says of its segments."""

    start: int
    """Offset of the first."""
    down: Axis
    across: Axis


@dataclass(frozen=True, slots=True)
class Grid:
    """The segments of a JPEG, row by row.

    They were held against the file: each ends with the marker that belongs there.
    """

    bounds: NDArray[np.int64]
    """Offset of each segment, then that of the end of the last, whose marker is the end marker
    (EOI), shape (segments + 1,)."""
    down: Axis
    across: Axis


def find_grid(
    data: Encoded, header: ImageHeader, lengths: NDArray[np.uint16] | None = None
) -> Grid | None:
    """Finds where a file may be cut.

    Args:
        data: The file.
        header: What `read_header` said of it.
        lengths: Of its segments, where they are known (`Sample.segments`): in bytes, each with the
            restart marker that ends it, the last without the end marker; uint16, shape (segments,).
            Without them the coded pixels are searched for markers.

    Returns:
        The grid. None for what isn't a JPEG of one sequential scan in Huffman code, with 8 bits,
        one or three components and restart markers whose interval divides the row of MCUs; and, if
        no lengths are given, for a file whose markers aren't as they should be, about which the
        decoder has more to say.

    Raises:
        CorruptDatasetError: The lengths don't fit the file.
    """
    frame = _read_frame(data, header)
    if lengths is None:
        return None if frame is None else _searched(data, frame)
    if frame is None:
        raise _misfit("the JPEG has none")
    return _given(data, frame, lengths)


def cut_out(
    data: Encoded, header: ImageHeader, grid: Grid, wanted: Rectangle, scale: int = 1
) -> Cut | None:
    """Cuts out what a rectangle needs.

    Args:
        data: The file.
        header: What `read_header` said of it.
        grid: What `find_grid` said of it.
        wanted: Part of the picture, as stored.
        scale: At which the cut will be decoded: 1, 2, 4 or 8 for the full size, a half, a quarter
            or an eighth. The cut's place is a multiple of it.

    Returns:
        The cut; None if it takes everything.
    """
    down, across = grid.down, grid.across
    rows, columns = down.count, across.count
    first_row, end_row = down.choose(wanted.top, wanted.height, scale)
    first, end = across.choose(wanted.left, wanted.width, scale)
    if (end_row - first_row, end - first) == (rows, columns):
        return None
    place = Rectangle(
        first_row * down.cell,
        first * across.cell,
        down.size(first_row, end_row),
        across.size(first, end),
    )
    head = bytearray(data[: int(grid.bounds[0])])
    struct.pack_into(">HH", head, header.frame + 1, place.height, place.width)
    # In a row of the grid the wanted segments lie side by side.
    starts = grid.bounds[:-1].reshape(rows, columns)[first_row:end_row, first]
    ends = grid.bounds[1:].reshape(rows, columns)[first_row:end_row, first:end]
    stops = ends[:, -1]
    whole = memoryview(data)
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    joined = bytearray().join((head, *[whole[start:stop] for start, stop in spans]))
    moved_to = len(head) + (stops - starts).cumsum() - stops
    codes = np.frombuffer(joined, np.uint8)
    codes[ends + (moved_to - 1)[:, np.newaxis]] = _repeated(_RESTART_CODES, ends.size).reshape(
        ends.shape
    )
    codes[-1] = _EOI
    return Cut(joined, place)


def _read_frame(data: Encoded, header: ImageHeader) -> _Frame | None:
    """Reads from the headers of frame and scan (T.81, B.2.2 and B.2.3) how the MCUs lie."""
    frame, scan, count = header.frame, header.scan, header.components
    scan_length = 6 + 2 * count
    start = scan - 2 + scan_length
    if (
        header.restart_interval == 0
        or count not in _CUTTABLE
        or start > len(data)
        or data[frame - 3] not in _SEQUENTIAL
        or data[frame] != _BLOCK
        or _stated_length(data, frame) != 8 + 3 * count
        or _stated_length(data, scan) != scan_length
        or data[scan] != count
    ):
        return None
    factors = bytes(data[frame + 7 : frame + 7 + 3 * count : 3])
    down, across = [code & 15 for code in factors], [code >> 4 for code in factors]
    if not all((*down, *across)):
        return None
    # The only component of a scan has MCUs of one block, whatever its factors.
    high, wide = (max(down), max(across)) if count > 1 else (1, 1)
    if -(-header.width // (_BLOCK * wide)) % header.restart_interval:
        return None
    ratios = (-(-high // min(down)), -(-wide // min(across))) if count > 1 else (1, 1)
    return _Frame(
        start,
        Axis(header.height, _BLOCK * high, ratios[0]),
        Axis(header.width, _BLOCK * wide * header.restart_interval, ratios[1]),
    )


def _stated_length(data: Encoded, content: int) -> int:
    return data[content - 2] << 8 | data[content - 1]


def _searched(data: Encoded, frame: _Frame) -> Grid | None:
    coded = np.frombuffer(data, np.uint8)[frame.start :]
    prefixes = np.flatnonzero(coded[:-1] == _PREFIX)
    codes = coded[prefixes + 1]
    # What follows the scan is no matter: the thumbnail after it, say, has markers of its own.
    restarts = codes & _ALL_RESTARTS == _RST0
    others = np.flatnonzero(~restarts & (codes != _STUFFED) & (codes != _PREFIX))
    if not len(others) or codes[others[0]] != _EOI:
        return None
    found = np.flatnonzero(restarts[: others[0]])
    if len(found) + 1 != frame.down.count * frame.across.count:
        return None
    if not np.array_equal(codes[found], _repeated(_RESTART_CODES, len(found))):
        return None
    ends = prefixes[np.append(found, others[0])] + (frame.start + _MARKER_SIZE)
    return Grid(np.append(frame.start, ends), frame.down, frame.across)


def _given(data: Encoded, frame: _Frame, lengths: NDArray[np.uint16]) -> Grid:
    rows, columns = frame.down.count, frame.across.count
    if lengths.shape != (rows * columns,):
        raise _misfit(f"it has the shape {lengths.shape}, the JPEG {rows} x {columns} segments")
    bounds = np.empty(len(lengths) + 1, np.int64)
    bounds[0] = frame.start
    bounds[1:] = lengths
    np.add.accumulate(bounds, out=bounds)  # in place: a sixth of the time of `cumsum` with a dtype
    bounds[-1] += _MARKER_SIZE
    if bounds[-1] > len(data):
        raise _misfit(f"it ends at byte {bounds[-1]} of {len(data)}")
    expected = _repeated(_RESTART_MARKERS, len(lengths))
    expected[-1] = _END_MARKER
    # Every two bytes of the file, overlapping.
    pairs = np.ndarray(len(data) - 1, np.uint16, data, strides=1)
    fits = pairs[bounds[1:] - _MARKER_SIZE] == expected
    if not fits.all():
        number = int(fits.argmin())
        marker = int(bounds[number + 1]) - _MARKER_SIZE
        raise _misfit(
            f"at byte {marker}, where segment {number} should end with "
            f"{expected[number].tobytes().hex().upper()}, stands "
            f"{bytes(data[marker : marker + _MARKER_SIZE]).hex().upper()}"
        )
    return Grid(bounds, frame.down, frame.across)


def _repeated(numbers: NDArray[_Number], count: int) -> NDArray[_Number]:
    """Gives the first of numbers that go round and round, shape (count,)."""
    if count <= numbers.size:
        return np.array(numbers[:count])
    repeated: NDArray[_Number] = np.resize(numbers, count)
    return repeated


def _misfit(reason: str) -> CorruptDatasetError:
    return CorruptDatasetError(
        f"the table of the JPEG's restart segments doesn't fit it: {reason}; run 'packer verify', "
        "then restore the dataset or pack it again"
    )
