"""npy: decoded pixels in NumPy's own files.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0.

* All images of one size: `shard-000000.npy`, `uint8`, shape (samples, height, width, 3), C order.
* Mixed sizes: `shard-000000.npy` is flat `uint8`, all images one after the other in C order;
  `shard-000000.offsets.npy`, `int64`, shape (samples + 1,), says where each starts and ends;
  `shard-000000.shapes.npy`, `int32`, shape (samples, 3), has height, width and 3.
* Planes of YUV 4:2:0 (`readers.yuv`) instead of RGB: of one size, `uint8`, shape (samples,
  height * 3 / 2, width); of mixed sizes as above, where shapes still has height, width and 3.
* With labels: `shard-000000.labels.npy`, `int32`, shape (samples,).

The header takes 128 bytes whatever the shape, so it can be written last. Nothing is pickled.
Extra fields are in the dataset's `index.arrow` alone.
"""

from __future__ import annotations

import struct

HEADER_BYTES = 128
SUFFIX = ".npy"

_MAGIC = b"\x93NUMPY\x01\x00"


def header(kind: str, shape: tuple[int, ...]) -> bytes:
    """Renders the header of an array in C order.

    Args:
        kind: Type of the elements as NumPy writes it, such as `|u1` or `<i8`.
        shape: Shape of the array.

    Returns:
        128 bytes.
    """
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
    length = HEADER_BYTES - len(_MAGIC) - 2
    return _MAGIC + struct.pack("<H", length) + text.ljust(length - 1).encode() + b"\n"
