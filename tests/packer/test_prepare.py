from __future__ import annotations

import io
import json
import struct
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from packer.image_policy import (
    Decode,
    ImagePolicy,
    Keep,
    Reencode,
    Resize,
    from_json,
    gives_pixels,
    policy_name,
    to_json,
)
from packer.prepare import prepare
from packer.protocols import Record
from readers.checksum import digest
from readers.decode import MAX_PIXELS, decode
from readers.errors import OptionError, SampleError, UnsupportedVersionError
from readers.header import read_header
from readers.sample import Image as SampleImage
from readers.sample import JsonValue, Pixels, Sample

HEIGHT, WIDTH = 60, 100
POLICIES: list[ImagePolicy] = [
    Keep(),
    Keep(check="decode"),
    Resize(side=32),
    Reencode(),
    Decode(),
    Decode(size=(16, 24)),
]
STORING = POLICIES[:4]


def picture(height: int = HEIGHT, width: int = WIDTH) -> Pixels:
    rows, columns = np.mgrid[0:height, 0:width]
    channels = (rows * 250 / height, columns * 250 / width, 125 + 60 * np.sin(columns / 9))
    pixels = np.stack(channels, axis=2).astype(np.uint8)
    pixels[: height // 5, : width // 5] = (250, 240, 30)
    return pixels


def jpeg(pixels: Pixels | None = None, subsampling: str = "444") -> bytes:
    encoded: bytes = simplejpeg.encode_jpeg(
        picture() if pixels is None else pixels, quality=95, colorsubsampling=subsampling
    )
    return encoded


def turned(data: bytes, orientation: int) -> bytes:
    block = Image.Exif()
    block[0x0112] = orientation
    content = block.tobytes()
    return data[:2] + struct.pack(">HH", 0xFFE1, len(content) + 2) + content + data[2:]


def saved(pillow_format: str, pixels: Pixels | None = None) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture() if pixels is None else pixels).save(stream, pillow_format)
    return stream.getvalue()


def damaged() -> bytes:
    whole = jpeg()
    tables = whole.index(b"\xff\xdb")
    return whole[:tables] + b"\x00\x01" + whole[tables:]


def bomb() -> bytes:
    whole = bytearray(jpeg())
    frame = whole.index(b"\xff\xc0") + 5
    whole[frame : frame + 4] = struct.pack(">HH", 65500, 65500)
    return bytes(whole)


def run(
    image: SampleImage,
    policy: ImagePolicy,
    *,
    max_pixels: int | None = MAX_PIXELS,
    keep_bad: bool = False,
) -> Record:
    sample = Sample("dog/one", image, 3, {"score": 0.5}, "dog/one.JPEG")
    record = prepare(sample, policy, max_pixels=max_pixels, keep_bad=keep_bad)
    assert (record.key, record.path, record.label) == ("dog/one", "dog/one.JPEG", 3)
    assert record.extra == {"score": 0.5}
    assert record.checksum == digest(record.image)
    return record


def pixels_of(record: Record) -> Pixels:
    if record.type == "pixels":
        flat = np.frombuffer(record.image, np.uint8)
        return flat.reshape(record.height, record.width, 3)
    header = read_header(record.image)
    assert (header.type, header.orientation) == (record.type, record.orientation)
    assert (header.height, header.width) == (record.height, record.width)
    return decode(record.image)


def mean_difference(one: Pixels, other: Pixels) -> float:
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


def resized(pixels: Pixels, height: int, width: int) -> Pixels:
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)


@pytest.mark.parametrize("check", ["header", "decode"])
@pytest.mark.parametrize(
    ("data", "kind", "orientation"),
    [
        (jpeg(), "jpeg", 1),
        (jpeg() + b"\0\n", "jpeg", 1),
        (turned(jpeg(), 6), "jpeg", 6),
        (saved("PNG"), "png", 1),
        (saved("WEBP"), "webp", 1),
    ],
)
def test_keep_leaves_every_byte(data: bytes, kind: str, orientation: int, check: str) -> None:
    record = run(data, Keep(check="decode") if check == "decode" else Keep())
    assert record.image is data
    assert (record.type, record.orientation) == (kind, orientation)
    assert (record.height, record.width) == (HEIGHT, WIDTH)
    assert (record.decoder, record.note) == (None, None)
    view = memoryview(data)
    assert run(view, Keep()).image is view


def test_only_a_full_check_finds_damage_inside() -> None:
    assert run(damaged(), Keep()).note is None
    record = run(damaged(), Keep(check="decode"))
    assert record.image == damaged()
    assert record.note is not None
    assert "extraneous bytes" in record.note


def test_a_bomb_is_kept_but_never_decoded() -> None:
    record = run(bomb(), Keep())
    assert (record.image, record.height, record.width) == (bomb(), 65500, 65500)
    for policy in POLICIES[1:]:
        with pytest.raises(SampleError, match="over the limit"):
            run(bomb(), policy)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"<html>404</html>", "no image"),
        (jpeg()[:900], "cut short|Premature end"),
        (saved("PNG")[:-20], "cut short"),
    ],
)
def test_a_bad_sample_is_named(data: bytes, reason: str, policy: ImagePolicy) -> None:
    with pytest.raises(SampleError, match=f"^dog/one.JPEG: .*({reason})") as caught:
        run(data, policy)
    assert (caught.value.path, caught.value.key) == ("dog/one.JPEG", "dog/one")


@pytest.mark.parametrize("policy", STORING, ids=repr)
def test_a_bad_sample_is_kept_untouched_when_asked(policy: ImagePolicy) -> None:
    html = run(b"<html>404</html>", policy, keep_bad=True)
    assert (html.image, html.type, html.height, html.width) == (
        b"<html>404</html>",
        "unknown",
        0,
        0,
    )
    assert html.bad
    assert html.note is not None
    assert html.note.startswith("no image")
    cut = turned(jpeg(), 8)[:900]
    record = run(cut, policy, keep_bad=True)
    assert (record.image, record.type, record.orientation) == (cut, "jpeg", 8)
    assert (record.height, record.width) == (HEIGHT, WIDTH)
    assert record.note is not None
    assert record.bad
    whole = run(jpeg(), policy, keep_bad=True)
    assert (whole.note, whole.bad) == (None, False)


def test_pixels_cannot_be_kept_bad() -> None:
    for policy in (Decode(), Decode(size=(8, 8))):
        with pytest.raises(SampleError):
            run(b"<html>404</html>", policy, keep_bad=True)


@pytest.mark.parametrize(
    ("policy", "size"),
    [
        (Resize(side=30), (30, 50)),
        (Resize(side=50, by="longer"), (30, 50)),
        (Resize(side=7), (7, 12)),
        (Resize(side=1, by="longer"), (1, 1)),
        (Resize(side=120, enlarge=True), (120, 200)),
        (Resize(side=200, by="longer", enlarge=True), (120, 200)),
    ],
)
def test_resize_sets_one_side(policy: Resize, size: tuple[int, int]) -> None:
    for data in (jpeg(), saved("PNG"), picture()):
        record = run(data, policy)
        assert (record.type, record.orientation) == ("jpeg", 1)
        assert (record.height, record.width) == size
        if min(size) >= 30:
            assert mean_difference(pixels_of(record), resized(picture(), *size)) < 4


def test_resize_keeps_a_small_upright_jpeg_byte_for_byte() -> None:
    for side in (HEIGHT, 1000):
        record = run(jpeg(), Resize(side=side))
        assert record.image == jpeg()
        assert record.decoder is None
    assert run(jpeg(), Resize(side=WIDTH, by="longer")).image == jpeg()
    for other in (turned(jpeg(), 3), saved("PNG"), picture()):
        record = run(other, Resize(side=1000))
        assert (record.type, record.height, record.width) == ("jpeg", HEIGHT, WIDTH)
        assert read_header(record.image).orientation == 1


def test_resize_measures_the_upright_picture() -> None:
    stored = np.ascontiguousarray(np.rot90(picture(), 1))
    record = run(turned(jpeg(stored), 6), Resize(side=30))
    assert (record.height, record.width, record.orientation) == (30, 50, 1)
    assert mean_difference(pixels_of(record), resized(picture(), 30, 50)) < 4


def test_enlarging_is_limited() -> None:
    thin = jpeg(picture(8, 2000))
    with pytest.raises(SampleError, match="enlarged to 250000 x 1000"):
        run(thin, Resize(side=1000, enlarge=True), max_pixels=None)
    with pytest.raises(SampleError, match="max_pixels"):
        run(jpeg(), Resize(side=600, enlarge=True), max_pixels=599_999)
    assert run(jpeg(), Resize(side=600, enlarge=True), max_pixels=600_000).width == 1000


def test_a_large_jpeg_is_decoded_smaller_without_a_visible_difference() -> None:
    whole = picture(480, 800)
    record = run(jpeg(whole), Decode(size=(60, 100)))
    assert mean_difference(pixels_of(record), resized(whole, 60, 100)) < 1.5


@pytest.mark.parametrize("policy", [Resize(side=32), Reencode()], ids=repr)
def test_encoding_options_are_obeyed(policy: Resize | Reencode) -> None:
    def made(data: bytes, quality: int, subsampling: str) -> bytes:
        options = {"quality": quality, "subsampling": subsampling}
        if isinstance(policy, Resize):
            return bytes(run(data, Resize(side=32, **options)).image)  # type: ignore[arg-type]
        return bytes(run(data, Reencode(**options)).image)  # type: ignore[arg-type]

    for subsampling in ("444", "422", "420", "440", "411"):
        encoded = made(jpeg(), 90, subsampling)
        assert simplejpeg.decode_jpeg_header(encoded)[2:] == ("YCbCr", subsampling)
    gray = simplejpeg.decode_jpeg_header(made(jpeg(), 90, "gray"))
    assert gray[2:] == ("Gray", "Gray")
    gray_source = jpeg(subsampling="Gray")
    assert simplejpeg.decode_jpeg_header(made(gray_source, 90, "420"))[2] == "Gray"
    assert len(made(jpeg(), 30, "420")) < len(made(jpeg(), 95, "420"))


@pytest.mark.parametrize("orientation", [1, 6])
def test_reencode_turns_upright_and_drops_the_tag(orientation: int) -> None:
    stored = np.ascontiguousarray(np.rot90(picture(), 1)) if orientation == 6 else picture()
    record = run(turned(jpeg(stored), orientation), Reencode(quality=95))
    assert (record.height, record.width, record.orientation) == (HEIGHT, WIDTH, 1)
    assert record.decoder == "simplejpeg"
    assert mean_difference(pixels_of(record), picture()) < 4


def test_reencode_names_what_a_jpeg_cannot_hold() -> None:
    with pytest.raises(SampleError, match="65501 x 1"):
        run(np.zeros((1, 65501, 3), np.uint8), Reencode())


def test_decode_without_a_size_gives_the_pixels() -> None:
    for data in (jpeg(), turned(jpeg(), 5), saved("PNG"), saved("GIF"), damaged()):
        record = run(data, Decode())
        assert (record.type, record.orientation) == ("pixels", 1)
        np.testing.assert_array_equal(pixels_of(record), decode(data))
    assert run(jpeg(), Decode()).decoder == "simplejpeg"
    assert run(saved("PNG"), Decode()).decoder == "pillow"
    assert run(damaged(), Decode()).note is not None


@pytest.mark.parametrize("size", [(20, 20), (30, 50), (60, 100), (90, 40), (200, 300), (1, 1)])
def test_crop_takes_the_middle(size: tuple[int, int]) -> None:
    pixels = pixels_of(run(saved("PNG"), Decode(size=size)))
    height, width = size
    scale = max(height / HEIGHT, width / WIDTH)
    used_height, used_width = height / scale, width / scale
    top, left = (HEIGHT - used_height) / 2, (WIDTH - used_width) / 2
    box = (left, top, left + used_width, top + used_height)
    wanted = Image.fromarray(picture()).resize((width, height), Image.Resampling.BICUBIC, box=box)
    assert mean_difference(pixels, np.asarray(wanted)) < 1


@pytest.mark.parametrize(
    ("size", "rows", "columns"),
    [
        ((50, 50), slice(10, 40), slice(0, 50)),
        ((60, 100), slice(0, 60), slice(0, 100)),
        ((30, 71), slice(0, 30), slice(10, 60)),
        ((120, 300), slice(0, 120), slice(50, 250)),
    ],
)
def test_pad_shows_all_in_the_middle_of_black(
    size: tuple[int, int], rows: slice, columns: slice
) -> None:
    pixels = pixels_of(run(saved("PNG"), Decode(size=size, fit="pad")))
    assert pixels.shape == (*size, 3)
    inside = pixels[rows, columns]
    np.testing.assert_array_equal(inside, resized(picture(), *inside.shape[:2]))
    outside = pixels.copy()
    outside[rows, columns] = 0
    assert not outside.any()


@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_fixed_size_shows_the_upright_picture(orientation: int, fit: str) -> None:
    data = turned(jpeg(picture(80, 60) if orientation > 4 else picture()), orientation)
    policy = Decode(size=(24, 30), fit="pad" if fit == "pad" else "crop")
    upright = saved("PNG", decode(data))
    assert mean_difference(pixels_of(run(data, policy)), pixels_of(run(upright, policy))) < 1.5


def test_a_decoded_dataset_can_be_packed_again() -> None:
    pixels = picture()
    kept = run(pixels, Keep())
    assert (kept.type, kept.decoder) == ("pixels", None)
    np.testing.assert_array_equal(pixels_of(kept), pixels)
    part = np.asfortranarray(pixels)[5:30, 10:40]
    np.testing.assert_array_equal(pixels_of(run(part, Keep())), part)
    np.testing.assert_array_equal(pixels_of(run(pixels, Decode())), pixels)
    assert run(pixels, Decode(size=(8, 9))).height == 8
    assert mean_difference(pixels_of(run(pixels, Reencode(quality=95))), pixels) < 4


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"side": 0}, "side must be an integer from 1"),
        ({"side": True}, "not True"),
        ({"side": 65501}, "65500"),
        ({"side": 9, "by": "width"}, "by must be one of shorter, longer, not 'width'"),
        ({"side": 9, "quality": 101}, "quality must be an integer from 1 to 100, not 101"),
        ({"side": 9, "subsampling": "4:2:0"}, "444, 422, 420, 440, 411, gray"),
    ],
)
def test_resize_options_are_validated(options: dict[str, object], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        Resize(**options)  # type: ignore[arg-type]


def test_other_options_are_validated() -> None:
    with pytest.raises(OptionError, match="check must be one of header, decode"):
        Keep(check="full")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="quality"):
        Reencode(quality=0)
    with pytest.raises(OptionError, match="fit must be one of crop, pad"):
        Decode(fit="stretch")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="size: width must be an integer"):
        Decode(size=(10, 0))
    for size in ((10,), 10, [10, 10]):
        with pytest.raises(OptionError, match="height and width"):
            Decode(size=size)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="enlarge must be True or False"):
        Resize(side=9, enlarge=1)  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        Keep().check = "decode"  # type: ignore[misc]


def test_policies_describe_themselves_for_the_manifest() -> None:
    assert [policy_name(policy) for policy in (*POLICIES[1:4], Decode())] == [
        "keep",
        "resize",
        "reencode",
        "decode",
    ]
    assert [gives_pixels(policy) for policy in POLICIES] == [False] * 4 + [True] * 2
    assert from_json({"name": "keep", "check": "decode"}) == Keep(check="decode")
    assert to_json(Keep()) == {"name": "keep", "check": "header"}
    for policy in POLICIES[2:]:
        facts = to_json(policy)
        assert from_json(json.loads(json.dumps(facts))) == policy
        assert facts["decoders"] == ["simplejpeg", "pillow"]
        assert "upright" in str(facts["pixels"])
    assert to_json(Decode(size=(16, 24)))["size"] == [16, 24]
    assert "bicubic" in str(to_json(Resize(side=32))["interpolation"])
    assert to_json(Reencode(quality=80))["quality"] == 80


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {"name": ["keep"]},
        {"name": "region"},
        {"name": "keep", "check": "header", "more": 1},
        {"name": "keep", "check": "full"},
        {**to_json(Resize(side=32)), "interpolation": "nearest"},
        {**to_json(Decode(size=(16, 24))), "size": 16},
    ],
)
def test_a_policy_of_another_version_is_not_taken_for_ours(facts: JsonValue) -> None:
    with pytest.raises(UnsupportedVersionError, match="no image policy"):
        from_json(facts)
