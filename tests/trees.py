"""Small inputs that the tests make themselves: JPEGs, trees of them, and a source in memory."""

from __future__ import annotations

import hashlib
import io
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from packer.image_policy import Decode, ImagePolicy, Keep, Region, policy_name
from packer.protocols import SourceReport
from packer.recoding import load_recode
from readers.decode import decode
from readers.errors import NotRecodableError
from readers.registry import FORMATS, FormatEntry
from readers.sample import JsonValue, Sample
from readers.yuv import Color

_MAX_COMMENT = 60_000


@lru_cache(maxsize=4096)
def jpeg(seed: int, size: int = 0, height: int = 24, width: int = 32, mode: str = "RGB") -> bytes:
    """Makes a valid JPEG of about `size` bytes at least; comments hold what the picture doesn't."""
    noise = np.random.default_rng(seed).integers(0, 255, (3, 4, 3), np.uint8)
    out = io.BytesIO()
    picture = Image.fromarray(noise).resize((width, height)).convert(mode)
    picture.save(out, "JPEG", quality=85)
    data = out.getvalue()
    padding = b""
    while len(data) + len(padding) < size:
        length = min(_MAX_COMMENT, max(1, size - len(data) - len(padding) - 4))
        filler = hashlib.sha256(b"%d" % seed).digest() * (length // 32 + 1)
        padding += b"\xff\xfe" + struct.pack(">H", length + 2) + filler[:length]
    return data[:2] + padding + data[2:]


def turned(data: bytes, orientation: int) -> bytes:
    """Gives a JPEG an EXIF orientation."""
    tag = struct.pack("<HHIHH", 0x112, 3, 1, orientation, 0)
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + tag + bytes(4)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]


def write_tree(root: Path, files: Mapping[str, bytes]) -> Path:
    """Writes files below a folder."""
    for name, data in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return root


def plain_files(samples: int, size: int = 0, classes: str = "abc") -> dict[str, bytes]:
    """Makes files of one size in class folders of one letter."""
    names = (f"{classes[i % len(classes)]}/{i:04d}.jpg" for i in range(samples))
    return {name: jpeg(number, size) for number, name in enumerate(names)}


def odd_files() -> dict[str, bytes]:
    """Makes files with odd names, sizes and contents, all of them good images."""
    deep = "/".join(f"d{level}" + "x" * 180 for level in range(4))
    names = (
        *("a/1.jpg", "a/2.JPG", "a/2.x.jpeg", "a/ lead and trail .jpg", "a/tab\tnew\nline.jpg"),
        *("a/-rf.jpg", "a/quote'\".jpg", "a/100%.jpg", "a/b.c.d..jpg", "a/back\\slash.jpg"),
        *("été/猫 001.jpg", "été/\U0001f431.jpg", "été/e\u0301.jpg"),
        *("été/stray\udcff.jpg", "été/%FF.jpg"),
        *(f"{deep}/{leaf}.jpg" for leaf in ("leaf", "leaf2")),
        *(f"n/{'n' * (length - 6)}.jpg" for length in (99, 100, 101, 156, 240)),
        *(f"n/sub/__{number}__.jpg" for number in range(6)),
    )
    sizes = (0, 0, 0, 1700, 2100, 0, 5000, 0, 16_000, 0, 70_000, 300_000)
    files = {
        name: jpeg(number, sizes[number % len(sizes)], 17 + number, 64 - number)
        for number, name in enumerate(names)
    }
    files["a/zeros inside.jpg"] = jpeg(90, 3000).replace(
        b"\xff\xfe", b"\xff\xfe\0\x06\0\0\0\0\xff\xfe", 1
    )
    files["a/zeros after.jpg"] = jpeg(91) + bytes(513)
    files["a/one zero after.jpg"] = jpeg(92) + b"\0"
    files["a/newline after.jpg"] = jpeg(93) + b"\n"
    files["a/gray.jpg"] = jpeg(94, mode="L")
    files["a/turned.jpg"] = turned(jpeg(95), 6)
    return {name: files[name] for name in sorted(files, key=os.fsencode)}


@dataclass(frozen=True)
class Packing:
    """A row of `FORMATS` with one of the kinds of content that it holds."""

    entry: FormatEntry
    pixels: bool
    region: bool = False
    """Whether files are rewritten for regions."""

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def policy(self) -> ImagePolicy:
        """What stores images without loss."""
        if self.region:
            return Region()
        return Decode() if self.pixels else Keep()

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the command is told for it."""
        return ("--format", self.name, "--image", policy_name(self.policy))

    def stored(self, data: bytes) -> bytes:
        """Gives the bytes that are to be stored of an image."""
        if self.region:
            try:
                return load_recode()(data, max_pixels=None).jpeg
            except NotRecodableError:
                return data
        return decode(data).tobytes() if self.pixels else data

    def __str__(self) -> str:
        kind = "region" if self.region else "pixels" if self.pixels else "files"
        return f"{self.name}-{kind}"


PACKINGS = tuple(
    Packing(entry, pixels)
    for entry in FORMATS.values()
    for pixels, held in ((False, entry.encoded), (True, entry.pixels))
    if held
)


REGION = Packing(FORMATS["webdataset"], pixels=False, region=True)
"""Files rewritten for regions, in one of the formats: what is beside the shards is no format's."""

PLAIN = next(one for one in PACKINGS if not one.entry.needs and not one.pixels)
"""A format that any installation has, for what doesn't depend on the format."""


@dataclass
class MemorySource:
    """Samples of a list, as a source that can be packed."""

    samples: Sequence[Sample]
    classes: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    kind: str = "memory"
    pixels: bool = False
    segments: bool = False
    color: Color = "rgb"
    shape: tuple[int, int, int] | None = None
    report: SourceReport = field(default_factory=SourceReport)
    fingerprint: str = "0"

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int, /) -> Sample:
        return self.samples[index]

    def path(self, index: int, /) -> str:
        return self.samples[index].path

    def stamp(self, index: int, /) -> bytes:  # noqa: ARG002 - nothing changes
        return b""


def a_sample(number: int, key: str | None = None, data: bytes | None = None) -> Sample:
    """Makes a sample of class 0 without extra fields."""
    name = f"{number:04d}" if key is None else key
    no_fields: dict[str, JsonValue] = {}
    return Sample(name, jpeg(number) if data is None else data, 0, no_fields, f"{name}.jpg")


def image_bytes(sample: Sample) -> bytes:
    """Gives the bytes of a sample's image, of a file or of pixels."""
    image = sample.image
    return image.tobytes() if isinstance(image, np.ndarray) else bytes(image)


def contents(folder: Path) -> dict[str, bytes]:
    """Reads all files below a folder."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
