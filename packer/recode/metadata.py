"""Which application data and comments a rewritten JPEG has."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from packer.recode.markers import DQT, FRAMES, Segment

_APP1, _APP2 = 0xE1, 0xE2
_EXIF, _MPF = b"Exif\0\0", b"MPF\0"
_NEEDED = ((0xE0, b"JFIF\0"), (_APP2, b"ICC_PROFILE\0"), (0xEE, b"Adobe"))
"""What says how the components are to be understood, by marker and beginning."""
_ORIENTATION_TAG, _SHORT = 0x0112, 3


def without_further_pictures(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Leaves out the index of pictures that follow the end of the image (MPF, CIPA DC-007)."""
    for segment in segments:
        if not (segment.marker == _APP2 and segment.content.startswith(_MPF)):
            yield segment


def only_needed(segments: Iterable[Segment], orientation: int) -> Iterator[Segment]:
    """Leaves out what decoding doesn't need: all but tables, JFIF, ICC, Adobe and the orientation.

    Args:
        segments: Those of the head.
        orientation: What EXIF says it is, 1 to 8; unless it is 1, an EXIF block of nothing else
            takes the place of the first one.
    """
    for segment in segments:
        if segment.marker == _APP1 and segment.content.startswith(_EXIF) and orientation > 1:
            yield Segment(_APP1, _orientation_block(orientation))
            orientation = 1
        elif segment.marker == DQT or segment.marker in FRAMES or _is_needed(segment):
            yield segment


def _is_needed(segment: Segment) -> bool:
    return any(
        segment.marker == marker and segment.content.startswith(start) for marker, start in _NEEDED
    )


def _orientation_block(orientation: int) -> bytes:
    """Makes an EXIF block (Exif 2.32, 4.6.2): a TIFF header, and a directory of one entry."""
    entry = struct.pack(">HHIHH", _ORIENTATION_TAG, _SHORT, 1, orientation, 0)
    return _EXIF + struct.pack(">2sHIH", b"MM", 42, 8, 1) + entry + bytes(4)
