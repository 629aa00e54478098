"""JPEGs of every kind that can be rewritten, as property tests want them."""

from __future__ import annotations

import io

import numpy as np
import simplejpeg
from hypothesis import strategies as st
from PIL import Image

from readers.sample import Pixels

_SUBSAMPLINGS = ("444", "422", "420", "440", "411", "gray")
_EXIF = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


@st.composite
def pictures(draw: st.DrawFn, most: int = 70) -> Pixels:
    """Draws noise, flat colour, or something smooth between."""
    height, width = draw(st.integers(1, most)), draw(st.integers(1, most))
    chance = np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.sampled_from(["noise", "flat", "smooth"]))
    if kind == "noise":
        return chance.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "flat":
        return np.full((height, width, 3), chance.integers(0, 256, 3), np.uint8)
    small = Image.fromarray(chance.integers(0, 256, (3, 4, 3), np.uint8))
    return np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))


@st.composite
def jpegs(draw: st.DrawFn, most: int = 70) -> bytes:
    """Draws a JPEG: by simplejpeg in any subsampling, or by Pillow with any of its options."""
    picture = draw(pictures(most))
    quality = draw(st.sampled_from([1, 30, 75, 95, 100]))
    if draw(st.booleans()):
        subsampling = draw(st.sampled_from(_SUBSAMPLINGS))
        made: bytes = simplejpeg.encode_jpeg(picture, quality=quality, colorsubsampling=subsampling)
        return made
    image = Image.fromarray(picture)
    if draw(st.booleans()):
        image = image.convert("L")
    options = draw(
        st.fixed_dictionaries(
            {"subsampling": st.sampled_from([0, 1, 2])},
            optional={
                "progressive": st.just(value=True),
                "optimize": st.just(value=True),
                "exif": st.just(_EXIF),
                "icc_profile": st.just(bytes(range(256)) * 30),
                "comment": st.just(b"a comment"),
                "restart_marker_blocks": st.integers(1, 9),
                "restart_marker_rows": st.integers(1, 3),
            },
        )
    )
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, **options)
    return out.getvalue()
