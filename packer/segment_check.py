"""Whether the restart segments that a dataset tells of are those of the image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.markers import Markers
from readers.errors import NotRecodableError
from readers.header import Encoded, image_type

_MARKER_BYTES = 2
_RST, _CYCLE = 0xFFD0, 8
_EOI = 0xFFD9


def segments_fault(image: Encoded, segments: NDArray[np.uint16]) -> str | None:
    """Holds segments against the markers among the coded pixels.

    Args:
        image: The image file.
        segments: See `readers.sample.Sample.segments`.

    Returns:
        What is wrong; None if each segment ends in its marker and there is no other.
    """
    if image_type(image) != "jpeg":
        return "it has restart segments and is no JPEG"
    markers = Markers(image)
    try:
        markers.next_scan()
    except NotRecodableError as error:
        return f"it has restart segments and a head that was never written with them: {error}"
    data = np.frombuffer(image, np.uint8)[markers.position :]
    ends = np.cumsum(segments, dtype=np.int64)
    wanted = ends - _MARKER_BYTES
    wanted[-1] = ends[-1]
    data = data[: int(ends[-1]) + _MARKER_BYTES]
    found = np.flatnonzero((data[:-1] == 0xFF) & (data[1:] != 0))  # noqa: PLR2004 - begins a marker
    numbers = _RST + np.arange(len(ends)) % _CYCLE
    numbers[-1] = _EOI
    if not np.array_equal(found, wanted) or not np.array_equal(
        0xFF00 | data[found + 1].astype(np.int64), numbers
    ):
        return f"its {len(ends)} restart segments don't end where its restart markers are"
    return None
