"""HDF5: one file a shard, every dataset in it contiguous.

Source: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html. The structures are
those that libhdf5 itself writes; only the bytes of `image` are streamed in.

* Encoded images: `image`, flat `uint8`, all files one after the other; `offsets`, `int64`, shape
  (samples + 1,), says where each starts and ends.
* Pixels of one size: `image`, `uint8`, shape (samples, height, width, 3).
* Pixels of mixed sizes: `image` and `offsets` as for encoded images, and `shapes`, `int32`, shape
  (samples, 3), with height, width and 3.
* Planes of YUV 4:2:0 (`readers.yuv`) instead of RGB: of one size, shape (samples, height * 3 / 2,
  width); of mixed sizes as for RGB, where shapes still has height, width and 3.
* `key`, flat `uint8` (UTF-8), with `key_offsets`, `int64`, shape (samples + 1,).
* With labels: `label`, `int32`, shape (samples,).
* With extra fields: `extra`, flat `uint8` (one JSON object a sample), with `extra_offsets`.

`image` starts at byte 2048 of the file. There are no variable-length types, chunks or filters.
"""

SUFFIX = ".h5"
IMAGE_START = 2048
"""Where libhdf5 puts the first dataset of a new file."""
