"""Decodes the scans of a JPEG into its quantised coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from packer.recode.bits import PADDING, TABLE_SIZE, derive, unstuff
from packer.recode.markers import (
    SOF_PROGRESSIVE,
    Frame,
    Markers,
    Scan,
    damaged,
)
from packer.recode.progressive import decode_ac, decode_dc, refine_ac, refine_dc
from packer.recode.sequential import decode_sequential
from packer.recode.status import check
from readers.errors import NotRecodableError

_BLOCK = 64
_MOST_SCANS = 64
"""Scans of a progressive JPEG; encoders make some ten, and each costs a walk over all blocks."""
_MOST_BLOCKS_A_BYTE = 8
"""A block takes a bit or more."""
_HIGHEST_BIT = 13
_LARGEST_DC_SYMBOL, _LARGEST_AC_SYMBOL = 15, 255
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where the blocks of a component lie."""

    horizontal: int
    """Blocks of an MCU horizontally."""
    vertical: int
    first: int
    """Number of the first block."""
    stride: int
    """Blocks of a row, with those that fill up the last MCU."""
    columns: int
    """Blocks of a row that show something."""
    rows: int


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The quantised coefficients of a picture."""

    frame: Frame
    mcus: int
    """MCUs of the picture, where all components are in one scan."""
    columns: int
    """MCUs of a row."""
    planes: tuple[_Plane, ...]
    """One a component."""
    blocks: NDArray[np.int16]
    """All blocks of one component, row by row, after those of the other: int16, shape (blocks, 64),
    zigzag order."""

    def units(self, components: Sequence[int] | None = None) -> NDArray[np.int64]:
        """Describes the blocks of an MCU, in the order in which they are coded.

        Args:
            components: Those of the scan; None for all. A scan of one component has one block an
                MCU, and none that show nothing.

        Returns:
            int64, shape (blocks of an MCU, 6): position of the component in the scan; number of
            the block of the first MCU; blocks from there to the MCU below, and to the MCU on the
            right; rows of MCUs in which it shows something, and columns.
        """
        chosen = self.planes if components is None else [self.planes[one] for one in components]
        if len(chosen) == 1:
            (plane,) = chosen
            return np.array([[0, plane.first, plane.stride, 1, plane.rows, plane.columns]])
        return np.array(
            [
                (
                    component,
                    plane.first + i * plane.stride + j,
                    plane.vertical * plane.stride,
                    plane.horizontal,
                    -(-(plane.rows - i) // plane.vertical),
                    -(-(plane.columns - j) // plane.horizontal),
                )
                for component, plane in enumerate(chosen)
                for i in range(plane.vertical)
                for j in range(plane.horizontal)
            ]
        )


def decode_coefficients(markers: Markers, max_pixels: int | None) -> Coefficients:
    """Decodes all scans.

    Args:
        markers: Of the file, nothing read yet; at the end marker afterwards.
        max_pixels: Limit of height x width, checked before memory is taken; None for no limit.

    Raises:
        NotRecodableError: The file can't be rewritten.
    """
    scan = markers.next_scan()
    frame = markers.frame
    if scan is None or frame is None:
        raise damaged("no coded pixels")
    for one in frame.components:
        if one.quantisation not in markers.quantised:
            raise damaged("a quantisation table is missing")
    coefficients = _empty(frame, len(markers.data), max_pixels)
    progressive = frame.kind == SOF_PROGRESSIVE
    reader: _Reader = (_Progressive if progressive else _Sequential)(markers, coefficients)
    scans = 0
    while scan is not None:
        scans += 1
        if scans > _MOST_SCANS:
            raise NotRecodableError(f"more than {_MOST_SCANS} scans")
        reader.read(scan)
        scan = markers.next_scan()
    reader.finish()
    return coefficients


def _empty(frame: Frame, nbytes: int, max_pixels: int | None) -> Coefficients:
    if max_pixels is not None and frame.height * frame.width > max_pixels:
        raise NotRecodableError(
            f"{frame.width} x {frame.height} pixels, over the limit of {max_pixels} (max_pixels)"
        )
    # A scan of one component has a block an MCU, whatever the sampling factors (T.81, A.2.2).
    alone = len(frame.components) == 1
    factors = [(1, 1) if alone else (one.horizontal, one.vertical) for one in frame.components]
    wide, high = (max(each) for each in zip(*factors, strict=True))
    columns = -(-frame.width // (8 * wide))
    rows = -(-frame.height // (8 * high))
    planes = []
    blocks = 0
    for horizontal, vertical in factors:
        own_columns = -(-frame.width * horizontal // (8 * wide))
        own_rows = -(-frame.height * vertical // (8 * high))
        stride = columns * horizontal
        planes.append(_Plane(horizontal, vertical, blocks, stride, own_columns, own_rows))
        blocks += stride * rows * vertical
    if blocks > _MOST_BLOCKS_A_BYTE * nbytes:
        raise damaged(f"{nbytes} bytes for {frame.width} x {frame.height} pixels")
    return Coefficients(
        frame, rows * columns, columns, tuple(planes), np.zeros((blocks, _BLOCK), np.int16)
    )


class _Reader(Protocol):
    """Reads scan by scan."""

    def read(self, scan: Scan) -> None: ...

    def finish(self) -> None:
        """Sees whether anything is missing."""


class _Sequential:
    def __init__(self, markers: Markers, coefficients: Coefficients) -> None:
        self._markers = markers
        self._into = coefficients
        self._seen: set[int] = set()

    def read(self, scan: Scan) -> None:
        if (scan.first, scan.last, scan.high, scan.low) != (0, _BLOCK - 1, 0, 0):
            raise damaged("a progressive scan in a sequential JPEG")
        if self._seen & set(scan.components):
            raise damaged("a component that is coded twice")
        self._seen |= set(scan.components)
        coded = _Coded(self._markers, self._into, scan)
        check(
            decode_sequential(
                *coded.arguments,
                _derived(self._markers.dc, scan.dc_tables, _LARGEST_DC_SYMBOL),
                _derived(self._markers.ac, scan.ac_tables, _LARGEST_AC_SYMBOL),
                self._into.blocks,
            )
        )

    def finish(self) -> None:
        if len(self._seen) < len(self._into.planes):
            raise damaged("a component that isn't coded")


class _Progressive:
    def __init__(self, markers: Markers, coefficients: Coefficients) -> None:
        self._markers = markers
        self._into = coefficients
        self._known = np.full((len(coefficients.planes), _BLOCK), _UNKNOWN)
        """Bit down to which each coefficient of each component is known."""

    def read(self, scan: Scan) -> None:
        self._progress(scan)
        coded = _Coded(self._markers, self._into, scan)
        blocks = self._into.blocks
        if scan.first:
            (table,) = _derived(self._markers.ac, scan.ac_tables, _LARGEST_AC_SYMBOL)
            decode = refine_ac if scan.high else decode_ac
            status = decode(*coded.arguments, table, scan.first, scan.last, scan.low, blocks)
        elif scan.high:
            status = refine_dc(*coded.arguments, scan.low, blocks)
        else:
            tables = _derived(self._markers.dc, scan.dc_tables, _LARGEST_DC_SYMBOL)
            status = decode_dc(*coded.arguments, tables, scan.low, blocks)
        check(status)

    def finish(self) -> None:
        if self._known.any():
            raise damaged("coefficients that no scan tells")

    def _progress(self, scan: Scan) -> None:
        """Checks that a scan goes on where those before left off (T.81, G.1.1.1)."""
        of_dc = scan.first == 0
        if not (scan.first <= scan.last < _BLOCK and scan.low <= _HIGHEST_BIT) or (
            scan.last != 0 if of_dc else len(scan.components) > 1
        ):
            raise damaged("an impossible progressive scan")
        if scan.high and scan.high != scan.low + 1:
            raise damaged("a progressive scan of more than one bit")
        before = scan.high or _UNKNOWN
        for component in scan.components:
            known = self._known[component]
            told = known[scan.first : scan.last + 1]
            if (told != before).any() or (not of_dc and known[0] == _UNKNOWN):
                raise damaged("progressive scans that don't follow each other")
            told[:] = scan.low


class _Coded:
    """The coded pixels of a scan, without stuffing; moves the markers to their end."""

    def __init__(self, markers: Markers, coefficients: Coefficients, scan: Scan) -> None:
        mcus, columns = coefficients.mcus, coefficients.columns
        if len(scan.components) == 1:
            plane = coefficients.planes[scan.components[0]]
            mcus, columns = plane.rows * plane.columns, plane.columns
        interval = min(markers.interval, mcus) or mcus
        data = np.frombuffer(markers.data, np.uint8)
        data.flags.writeable = False
        bits = np.empty(len(data) - markers.position + PADDING, np.uint8)
        bounds = np.empty(-(-mcus // interval) + 1, np.int64)
        end = unstuff(data, markers.position, bits, bounds)
        check(end)
        markers.position = end
        units = coefficients.units(scan.components)
        self.arguments = bits, bounds, interval, mcus, columns, units


def _derived(
    tables: list[bytes | None], numbers: tuple[int, ...], largest: int
) -> NDArray[np.int32]:
    derived = np.empty((len(numbers), TABLE_SIZE), np.int32)
    for row, number in zip(derived, numbers, strict=True):
        table = tables[number]
        if table is None:
            raise damaged("a Huffman table is missing")
        check(derive(np.frombuffer(table, np.uint8), largest, row))
    return derived
