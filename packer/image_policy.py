"""Image policies: what packing does to the images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, get_args

from readers.errors import OptionError, UnsupportedVersionError
from readers.fitting import DECODERS, INTERPOLATION, LIBRARIES, PIXELS, Fit, describe
from readers.sample import JsonValue
from readers.yuv import OPENCV, Color

Check: TypeAlias = Literal["header", "decode"]
Side: TypeAlias = Literal["shorter", "longer"]
Metadata: TypeAlias = Literal["keep", "drop"]
Subsampling: TypeAlias = Literal["444", "422", "420", "440", "411", "gray"]

MAX_JPEG_SIDE = 65_500
"""Largest height and width that libjpeg writes."""
_MAX_QUALITY = 100

_ENCODER = "simplejpeg"
_REWRITING = (
    "the coefficients of a JPEG, coded again as one baseline scan with restart markers and optimal "
    "Huffman tables; a file for which that isn't safe is kept as it is"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Stores every file byte for byte.

    Raises:
        OptionError: `check` is none of those listed.
    """

    check: Check = "header"
    """How a file is examined: by its head and whether it is cut short, or by decoding it all."""

    def __post_init__(self) -> None:
        _check_choice("check", self.check, get_args(Check))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Stores upright JPEG files of a given size in one direction, the other in proportion.

    A JPEG that is upright and needs no resizing is stored byte for byte.

    Raises:
        OptionError: A value is out of its range.
    """

    side: int
    """Pixels that the side is to have, 1 to 65500."""
    by: Side = "shorter"
    """Which of the two sides."""
    enlarge: bool = False
    """Whether images that are smaller are enlarged, or else left at their size."""
    quality: int = 90
    """Quality of the JPEG, 1 to 100 as libjpeg has it."""
    subsampling: Subsampling = "420"
    """Chroma subsampling; `gray` makes all images gray. Gray images stay gray in any case."""

    def __post_init__(self) -> None:
        _check_range("side", self.side, MAX_JPEG_SIDE)
        _check_choice("by", self.by, get_args(Side))
        _check_flag("enlarge", self.enlarge)
        _check_jpeg_options(self.quality, self.subsampling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reencode:
    """Stores every image as an upright JPEG of its own size.

    Raises:
        OptionError: A value is out of its range.
    """

    quality: int = 90
    """Quality of the JPEG, 1 to 100 as libjpeg has it."""
    subsampling: Subsampling = "420"
    """Chroma subsampling; `gray` makes all images gray. Gray images stay gray in any case."""

    def __post_init__(self) -> None:
        _check_jpeg_options(self.quality, self.subsampling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Stores upright pixels.

    Raises:
        OptionError: A value is out of its range.
    """

    size: tuple[int, int] | None = None
    """Height and width of all images, to which they are scaled up or down; None leaves each at
    its own size."""
    fit: Fit = "crop"
    color: Color = "rgb"

    def __post_init__(self) -> None:
        if self.size is not None:
            _check_size(self.size)
        _check_choice("fit", self.fit, get_args(Fit))
        _check_choice("color", self.color, get_args(Color))
        if self.color == "yuv420" and self.size is not None and any(one % 2 for one in self.size):
            raise OptionError(f"YUV 4:2:0 of one size needs an even height and width: {self.size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Stores every JPEG rewritten so that regions of it decode by themselves; pixels stay the same.

    What can't be rewritten, JPEG or not, is stored byte for byte. Needs numba.

    Raises:
        OptionError: `metadata` is none of those listed.
    """

    metadata: Metadata = "keep"
    """Whether EXIF, XMP and comments stay, or only what decoding needs: orientation, colour
    profile, and what JFIF and Adobe's marker say."""

    def __post_init__(self) -> None:
        _check_choice("metadata", self.metadata, get_args(Metadata))


ImagePolicy: TypeAlias = Keep | Region | Resize | Reencode | Decode

_BY_NAME: dict[str, Callable[..., ImagePolicy]] = {
    "keep": Keep,
    "region": Region,
    "resize": Resize,
    "reencode": Reencode,
    "decode": Decode,
}
_RULES = frozenset({"name", "decoders", "pixels", "interpolation", "encoder", "rewriting"})
"""What `to_json` tells beside the options."""


def policy_name(policy: ImagePolicy) -> str:
    """Names a policy as the manifest and the command line do: `keep`, `resize` and so on."""
    return type(policy).__name__.lower()


def libraries_of(policy: ImagePolicy) -> tuple[str, ...]:
    """Names the libraries whose versions decide what a policy makes of an image."""
    if isinstance(policy, Keep):
        return ()
    if isinstance(policy, Decode) and policy.color == "yuv420":
        return (OPENCV, *LIBRARIES)
    # A JPEG is rewritten if libjpeg-turbo finds nothing to warn of in its head.
    return ("simplejpeg",) if isinstance(policy, Region) else LIBRARIES


def gives_pixels(policy: ImagePolicy) -> bool:
    """Says whether a policy stores pixels whatever the source; `Keep` does if the source does."""
    return isinstance(policy, Decode)


def to_json(policy: ImagePolicy) -> dict[str, JsonValue]:
    """Describes for the manifest how the images were made; depends on the options only."""
    if isinstance(policy, Decode):
        return describe(policy.size, policy.fit, policy.color)
    facts: dict[str, JsonValue] = {"name": policy_name(policy)} | asdict(policy)
    if isinstance(policy, Keep):
        return facts
    if isinstance(policy, Region):
        facts["rewriting"] = _REWRITING
        return facts
    facts |= {"decoders": DECODERS, "pixels": PIXELS}
    if isinstance(policy, Resize):
        facts["interpolation"] = INTERPOLATION
    facts["encoder"] = _ENCODER
    return facts


def from_json(facts: JsonValue) -> ImagePolicy:
    """Makes the policy of what `to_json` gave.

    Raises:
        UnsupportedVersionError: It is no policy that this version carries out in just that way.
    """
    if isinstance(facts, dict):
        kind = _BY_NAME.get(str(facts.get("name")))
        options: dict[str, object] = {
            name: value for name, value in facts.items() if name not in _RULES
        }
        if isinstance(size := options.get("size"), list):
            options["size"] = tuple(size)
        try:
            policy = kind(**options) if kind is not None else None
        except (OptionError, TypeError):
            policy = None
        if policy is not None and to_json(policy) == facts:
            return policy
    raise UnsupportedVersionError(
        f"this version has no image policy that is just {facts!r}: use the one that packed it"
    )


def _check_jpeg_options(quality: int, subsampling: str) -> None:
    _check_range("quality", quality, _MAX_QUALITY)
    _check_choice("subsampling", subsampling, get_args(Subsampling))


def _check_range(name: str, value: object, largest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
        raise OptionError(f"{name} must be an integer from 1 to {largest}, not {value!r}")


def _check_size(size: object) -> None:
    if not isinstance(size, tuple) or len(size) != 2:  # noqa: PLR2004, height and width
        raise OptionError(f"size must be a tuple of height and width, not {size!r}")
    for name, value in zip(("height", "width"), size, strict=True):
        _check_range(f"size: {name}", value, MAX_JPEG_SIDE)


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, not {value!r}")


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
