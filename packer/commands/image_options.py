"""The options of `packer convert` that say what happens to the images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

import click

from packer.commands.parameters import Command, PictureSize
from packer.image_policy import (
    Check,
    Decode,
    ImagePolicy,
    Keep,
    Metadata,
    Reencode,
    Region,
    Resize,
    Side,
    Subsampling,
)
from readers.fitting import Fit
from readers.yuv import Color

_POLICIES: dict[str, type[ImagePolicy]] = {
    "keep": Keep,
    "region": Region,
    "resize": Resize,
    "reencode": Reencode,
    "decode": Decode,
}

_OPTIONS = (
    click.option(
        "--image",
        type=click.Choice(list(_POLICIES)),
        help="keep: the bytes untouched (default); region: JPEGs rewritten without loss, so that "
        "crops decode without the rest; resize: to JPEGs of --side pixels; reencode: to "
        "JPEGs of --quality; decode: to pixels, for npy (default there) and hdf5.",
    ),
    click.option(
        "--metadata",
        type=click.Choice(get_args(Metadata)),
        help="region: keep EXIF, XMP and comments, or drop what decoding doesn't need  [keep]",
    ),
    click.option("--side", type=click.IntRange(min=1), help="resize: pixels of the side."),
    click.option("--by", type=click.Choice(get_args(Side)), help="resize: which side  [shorter]"),
    click.option(
        "--enlarge", is_flag=True, default=None, help="resize: enlarge smaller images too."
    ),
    click.option(
        "--quality", type=click.IntRange(1, 100), help="resize, reencode: JPEG quality  [90]"
    ),
    click.option(
        "--subsampling",
        type=click.Choice(get_args(Subsampling)),
        help="resize, reencode: chroma subsampling  [420]",
    ),
    click.option(
        "--size",
        type=PictureSize(),
        help="decode: one size for all, 224 or 240x320 (height first).",
    ),
    click.option(
        "--fit",
        type=click.Choice(get_args(Fit)),
        help="decode with --size: crop the middle or pad with black  [crop]",
    ),
    click.option(
        "--color",
        type=click.Choice(get_args(Color)),
        help="decode: RGB, or planes of YUV 4:2:0, half the bytes  [rgb]",
    ),
    click.option(
        "--check",
        type=click.Choice(get_args(Check)),
        help="keep: examine each image's head and end, or decode it  [header]",
    ),
)


def image_options(command: Command) -> Command:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_policy(given: Mapping[str, Any], default: str) -> ImagePolicy | None:
    """Makes the policy that the options ask for; None where they leave it to the format.

    Args:
        given: The options by name; None for those that aren't given.
        default: Name of the policy that the format calls for, to which options without `--image`
            belong.

    Raises:
        click.UsageError: An option doesn't belong to the policy, or is missing.
    """
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        return None
    name = values.pop("image", default)
    for option in values:
        if option not in _options_of(name):
            owners = " or ".join(other for other in _POLICIES if option in _options_of(other))
            raise click.UsageError(f"--{option} belongs to --image {owners}, not {name}")
    if name == "resize" and "side" not in values:
        raise click.UsageError("--image resize needs --side with the number of pixels")
    return _POLICIES[name](**values)


def _options_of(policy: str) -> set[str]:
    return {field.name for field in fields(_POLICIES[policy])}
