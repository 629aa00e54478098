from __future__ import annotations

import io
import struct
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from readers.decode import MAX_PIXELS, decode, decode_stored, orient
from readers.errors import SampleError
from readers.header import read_header
from readers.sample import Pixels

HEIGHT, WIDTH = 48, 80
TO_STORED = {
    1: lambda pixels: pixels,
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: np.rot90(pixels, 1),
    7: lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2),
    8: lambda pixels: np.rot90(pixels, -1),
}
"""How the upright picture was held against the sensor, by EXIF orientation."""


def picture(height: int = HEIGHT, width: int = WIDTH) -> Pixels:
    rows, columns = np.mgrid[0:height, 0:width]
    channels = (rows * 250 / height, columns * 250 / width, 125 + 60 * np.sin(columns / 9))
    pixels = np.stack(channels, axis=2).astype(np.uint8)
    pixels[: height // 5, : width // 5] = (250, 240, 30)
    return pixels


def has_avif() -> bool:
    Image.init()
    return "AVIF" in Image.SAVE


def saved(
    pillow_format: str, mode: str = "RGB", pixels: Pixels | None = None, exif: bytes = b""
) -> bytes:
    if pillow_format == "AVIF" and not has_avif():
        pytest.skip("this Pillow has no AVIF")
    stream = io.BytesIO()
    options = {"exif": exif} if exif else {}
    image = Image.fromarray(picture() if pixels is None else pixels)
    image.convert(mode).save(stream, pillow_format, **options)
    return stream.getvalue()


def jpeg(pixels: Pixels | None = None) -> bytes:
    encoded: bytes = simplejpeg.encode_jpeg(
        np.ascontiguousarray(picture() if pixels is None else pixels),
        quality=95,
        colorsubsampling="444",
    )
    return encoded


def exif(orientation: int) -> bytes:
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


def jpeg_with_exif(pixels: Pixels, orientation: int) -> bytes:
    whole, block = jpeg(pixels), exif(orientation)
    return whole[:2] + struct.pack(">HH", 0xFFE1, len(block) + 2) + block + whole[2:]


def frame_patched(offset: int, value: bytes) -> bytes:
    whole = bytearray(jpeg())
    start = whole.index(b"\xff\xc0") + 4 + offset
    whole[start : start + len(value)] = value
    return bytes(whole)


def bomb(height: int, width: int) -> bytes:
    return frame_patched(1, struct.pack(">HH", height, width))


def by_pillow(data: bytes) -> Pixels:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))


def mean_difference(one: Pixels, other: Pixels) -> float:
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


def check_form(pixels: Pixels) -> None:
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert pixels.flags.c_contiguous


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turns_upright_once(orientation: int) -> None:
    stored = np.ascontiguousarray(TO_STORED[orientation](picture()))
    np.testing.assert_array_equal(orient(stored, orientation), picture())
    for lossless in ("PNG", "TIFF"):
        pixels = decode(saved(lossless, pixels=stored, exif=exif(orientation)))
        check_form(pixels)
        np.testing.assert_array_equal(pixels, picture())
    upright = decode(jpeg_with_exif(stored, orientation))
    check_form(upright)
    assert mean_difference(upright, picture()) < 2


@pytest.mark.parametrize(
    ("pillow_format", "mode"),
    [
        ("JPEG", "RGB"),
        ("JPEG", "L"),
        ("PNG", "RGB"),
        ("PNG", "RGBA"),
        ("PNG", "LA"),
        ("PNG", "L"),
        ("PNG", "P"),
        ("PNG", "1"),
        ("GIF", "P"),
        ("WEBP", "RGB"),
        ("WEBP", "RGBA"),
        ("BMP", "RGB"),
        ("TIFF", "CMYK"),
        ("JPEG2000", "RGB"),
        ("AVIF", "RGB"),
    ],
)
def test_every_type_and_mode_gives_three_channels(pillow_format: str, mode: str) -> None:
    data = saved(pillow_format, mode)
    pixels = decode(data)
    check_form(pixels)
    np.testing.assert_array_equal(pixels, by_pillow(data))
    np.testing.assert_array_equal(decode(memoryview(data)), pixels)


@pytest.mark.parametrize(
    "colour", [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (128, 128, 128)]
)
def test_cmyk_jpeg_is_no_negative(colour: tuple[int, int, int]) -> None:
    flat = np.full((32, 32, 3), colour, np.uint8)
    pixels = decode(saved("JPEG", "CMYK", flat))
    assert np.abs(pixels.astype(int) - flat).max() <= 25


@pytest.mark.parametrize("pillow_format", ["PNG", "TIFF"])
def test_16_bit_gray_is_scaled_and_not_clipped(pillow_format: str) -> None:
    deep = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    stream = io.BytesIO()
    Image.fromarray(deep).save(stream, pillow_format)
    pixels = decode(stream.getvalue())
    check_form(pixels)
    for channel in range(3):
        np.testing.assert_array_equal(pixels[:, :, channel], deep >> 8)


def test_32_bit_samples_are_reported() -> None:
    stream = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.float32)).save(stream, "TIFF")
    with pytest.raises(SampleError, match="32-bit"):
        decode(stream.getvalue())


def test_palette_with_transparency_by_entry_does_not_warn() -> None:
    stream = io.BytesIO()
    image = Image.fromarray(picture()).convert("P")
    image.save(stream, "PNG", transparency=bytes(range(256)))
    np.testing.assert_array_equal(decode(stream.getvalue()), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("pillow_format", ["GIF", "WEBP", "PNG", "TIFF"])
def test_takes_the_first_of_several_pictures(pillow_format: str) -> None:
    red, blue = (Image.new("RGB", (16, 8), colour) for colour in ("red", "blue"))
    stream = io.BytesIO()
    red.save(stream, pillow_format, save_all=True, append_images=[blue])
    pixels = decode(stream.getvalue())
    assert pixels.shape == (8, 16, 3)
    assert np.abs(pixels.astype(int) - (255, 0, 0)).max() <= 4


def test_pixels_pass_through() -> None:
    pixels = picture()
    assert decode(pixels) is pixels


@pytest.mark.parametrize("data", [bomb(65500, 65500), bomb(30000, 30000)])
def test_a_bomb_is_refused_before_memory_is_taken(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(
            SampleError, match=rf"pixels, over the limit of {MAX_PIXELS}.*max_pixels"
        ):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_bomb_is_refused_in_little_memory() -> None:
    code = """
import resource, sys
from readers.decode import decode
from readers.errors import SampleError
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
bomb, fine = (bytes.fromhex(text) for text in sys.stdin.read().split())
try:
    decode(bomb)
except SampleError as error:
    print(error)
print(decode(fine).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=f"{bomb(65500, 65500).hex()} {jpeg().hex()}",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("65500 x 65500 = 4290250000 pixels, over the limit")
    assert done.stdout.endswith("(48, 80, 3)\n")


@pytest.mark.parametrize("data", [jpeg(), saved("PNG"), saved("GIF")])
def test_the_limit_is_an_option(data: bytes) -> None:
    exact = HEIGHT * WIDTH
    assert decode(data, max_pixels=exact).shape == (HEIGHT, WIDTH, 3)
    assert decode(data, max_pixels=None).shape == (HEIGHT, WIDTH, 3)
    with pytest.raises(SampleError, match=f"80 x 48 = {exact} pixels, over the limit of 3839"):
        decode(data, max_pixels=exact - 1)


@pytest.mark.parametrize("pillow_format", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "JPEG2000"])
def test_pillows_own_limit_does_not_hold(
    pillow_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = saved(pillow_format)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", HEIGHT * WIDTH * 2 // 3)
    assert decode(data).shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("pillow_format", ["JPEG", "PNG", "WEBP"])
def test_a_cut_image_is_never_filled_up(
    pillow_format: str, *, lenient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    data = saved(pillow_format)
    for tenth in range(10):
        with pytest.raises(SampleError):
            decode(data[: len(data) * tenth // 10])


@pytest.mark.parametrize("pillow_format", ["GIF", "BMP", "TIFF", "JPEG2000", "AVIF"])
def test_a_cut_image_of_another_type_is_reported(pillow_format: str) -> None:
    data = saved(pillow_format)
    for tenth in range(9):
        with pytest.raises(SampleError):
            decode(data[: len(data) * tenth // 10])


def test_a_jpeg_that_is_refused_gets_a_second_decoder_and_a_note() -> None:
    whole = jpeg()
    tables = whole.index(b"\xff\xdb")
    data = whole[:tables] + b"\x00\x01" + whole[tables:]
    decoded = decode_stored(data, read_header(data))
    assert decoded.decoder == "pillow"
    assert decoded.note is not None
    assert "extraneous bytes" in decoded.note
    np.testing.assert_array_equal(decoded.pixels, decode(whole))
    clean = decode_stored(whole, read_header(whole))
    assert (clean.decoder, clean.note) == ("simplejpeg", None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (frame_patched(0, b"\x0c"), "precision 12"),
        (frame_patched(-2, b"\0\0"), "impossible length"),
        (jpeg().replace(b"\xff\xc0", b"\xff\xc3"), "simplejpeg"),
        (jpeg().replace(b"\xff\xc0", b"\xff\xce"), "simplejpeg"),
        (b"<html>404</html>", "no image: starts with '<html>404</html>'"),
        (b"", "empty file"),
    ],
)
def test_says_why_nothing_decodes_it(data: bytes, reason: str) -> None:
    with pytest.raises(SampleError, match=reason):
        decode(data)


@pytest.mark.parametrize(
    ("at_least", "scale"),
    [((1, 1), 8), ((25, 38), 8), ((26, 38), 4), ((50, 76), 4), ((51, 1), 2), ((1, 152), 1)],
)
def test_scaled_decode_is_never_smaller_than_asked(at_least: tuple[int, int], scale: int) -> None:
    whole = picture(200, 302)
    data = jpeg(whole)
    pixels = decode_stored(data, read_header(data), at_least=at_least).pixels
    assert pixels.shape == (-(-200 // scale), -(-302 // scale), 3)
    smaller = Image.fromarray(whole).resize(
        (pixels.shape[1], pixels.shape[0]), Image.Resampling.BOX
    )
    assert mean_difference(pixels, np.asarray(smaller)) < 3


def test_decodes_alike_in_threads() -> None:
    files = [saved(name) for name in ("JPEG", "PNG", "GIF", "WEBP", "TIFF")] * 8
    with ThreadPoolExecutor(8) as pool:
        for one, other in zip(pool.map(decode, files), map(decode, files), strict=True):
            np.testing.assert_array_equal(one, other)


SMALL = picture(17, 19)
SEEDS = [
    jpeg_with_exif(SMALL, 6),
    *(saved(name, pixels=SMALL) for name in ("PNG", "GIF", "WEBP", "BMP", "TIFF", "JPEG2000")),
    *(saved("JPEG", mode, SMALL) for mode in ("L", "CMYK")),
]


@settings(max_examples=400, deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 255)), max_size=5),
    cut=st.none() | st.tuples(st.integers(0, 1500), st.integers(0, 40)),
)
def test_damage_raises_nothing_else(
    seed: bytes, edits: list[tuple[int, int]], cut: tuple[int, int] | None
) -> None:
    data = bytearray(seed)
    for position, value in edits:
        data[position % len(data)] = value
    if cut is not None:
        del data[cut[0] : cut[0] + cut[1]]
    try:
        check_form(decode(bytes(data), max_pixels=1_000_000))
    except SampleError as error:
        assert str(error)  # noqa: PT017, either outcome is right, but a report says why
