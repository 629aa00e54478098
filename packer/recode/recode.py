"""Rewrites a JPEG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from packer.recode.coefficients import decode_coefficients
from packer.recode.markers import (
    DHT,
    DRI,
    EOI,
    FRAMES,
    SOF_BASELINE,
    SOF_EXTENDED,
    SOI,
    SOS,
    Frame,
    Markers,
    Segment,
)
from packer.recode.metadata import only_needed, without_further_pictures
from packer.recode.scan import code_scan
from readers.errors import NotRecodableError
from readers.header import Encoded, read_header

_START = bytes((0xFF, SOI))
_END = bytes((0xFF, EOI))


@dataclass(frozen=True, slots=True)
class Recoded:
    """A rewritten JPEG."""

    jpeg: bytes
    segments: NDArray[np.uint16]
    """Length in bytes of each restart segment, in order, with the marker that ends it; the last one
    without the end of the image."""


def recode(jpeg: Encoded, *, max_pixels: int | None, metadata: bool = True) -> Recoded:
    """Rewrites a JPEG.

    Takes 2 bytes of memory a coefficient: 6 a pixel at most, 3 with 4:2:0 subsampling.

    Args:
        jpeg: The file.
        max_pixels: Limit of height x width, checked before memory is taken; None for no limit.
        metadata: Whether all application data and comments stay, or those only that decoding needs.

    Returns:
        The rewritten file, whose coefficients are the same; rewriting it again changes nothing.

    Raises:
        NotRecodableError: It can't be rewritten; the message is the reason in a few words.
    """
    markers = Markers(jpeg)
    coefficients = decode_coefficients(markers, max_pixels)
    _check_head(jpeg)
    scan = code_scan(coefficients)
    kept = without_further_pictures(markers.kept)
    if not metadata:
        kept = only_needed(kept, read_header(jpeg).orientation)
    parts = [_START, *_head(kept, markers, coefficients.frame)]
    parts += [_segment(DHT, table) for table in scan.tables]
    parts += [_segment(DRI, scan.interval.to_bytes(2, "big")), _scan_header(coefficients.frame)]
    return Recoded(b"".join([*parts, scan.pixels.data, _END]), scan.lengths)


def _check_head(jpeg: Encoded) -> None:
    """Refuses sampling, colour and ICC markers that libjpeg-turbo warns of or doesn't know."""
    try:
        with suppress(KeyError):  # simplejpeg decodes 4:4:1, for which it has no name
            simplejpeg.decode_jpeg_header(jpeg, strict=True)
    except ValueError as error:
        raise NotRecodableError(f"libjpeg-turbo refuses its head: {error}") from error


def _head(segments: Iterable[Segment], markers: Markers, frame: Frame) -> Iterator[bytes]:
    """Writes the segments that stay, and the frame header among them as that of a baseline frame.

    A baseline frame has quantisation tables of one byte an entry only (T.81, B.2.4.1).
    """
    plain = all(markers.quantised[one.quantisation] == 1 for one in frame.components)
    for segment in segments:
        marker = segment.marker
        if marker in FRAMES:
            marker = SOF_BASELINE if plain else SOF_EXTENDED
        yield _segment(marker, segment.content)


def _scan_header(frame: Frame) -> bytes:
    content = bytearray([len(frame.components)])
    for number, one in enumerate(frame.components):
        table = min(number, 1)
        content += bytes((one.id, table << 4 | table))
    return _segment(SOS, bytes([*content, 0, 63, 0]))


def _segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(content) + 2).to_bytes(2, "big") + content
