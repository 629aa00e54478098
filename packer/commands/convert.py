"""`packer convert`: packs a source into a dataset, or one a split."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from packer.commands.display import Display, clock, number, size
from packer.commands.image_options import chosen_policy, image_options
from packer.commands.parameters import ByteSize, as_json, list_options, place, quiet, workers
from packer.convert import convert as pack
from packer.convert import plan_of
from packer.dry_run import dry_run as dry_run_of
from packer.image_policy import Region
from packer.options import ConvertOptions
from packer.protocols import PackSource
from packer.recoding import load_recode
from packer.sources.folder import classes_of, splits_of
from packer.sources.opening import open_source
from readers.decode import MAX_PIXELS
from readers.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    FormatError,
    OptionError,
    StorageError,
)
from readers.manifest import MANIFEST
from readers.opening import open_dataset
from readers.registry import FORMATS, format_entry
from readers.sample import JsonValue


@click.command()
@click.argument("source", type=place)
@click.argument("destination", type=place)
@click.option("--format", required=True, help=f"One of {', '.join(FORMATS)}; see 'packer formats'.")
@image_options
@click.option(
    "--classes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the names of the classes, one a line, in the order of their labels.",
)
@list_options
@click.option(
    "--shard-size",
    type=ByteSize(),
    help="Begin a new shard at this size, like 500MB.  [parquet, tfrecord, webdataset 1GB, others "
    "one shard]",
)
@click.option(
    "--shard-samples",
    type=click.IntRange(min=1),
    help="Begin a new shard after so many samples.  [1,000,000]",
)
@click.option(
    "--shuffle",
    type=click.IntRange(0, (1 << 64) - 1),
    metavar="SEED",
    help="Pack in a random order, the same for the same seed.",
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip", "keep"]),
    default="stop",
    show_default=True,
    help="A sample that can't be used: end, leave it out, or store its bytes all the same.",
)
@click.option(
    "--max-pixels",
    type=click.IntRange(min=0),
    default=MAX_PIXELS,
    show_default=True,
    help="Largest image that is decoded; 0 for no limit.",
)
@workers
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the dataset at DESTINATION, and discard another unfinished run.",
)
@click.option(
    "--resume/--no-resume",
    default=True,
    show_default=True,
    help="Go on with an unfinished run of the same source and options.",
)
@click.option("--dry-run", is_flag=True, help="Predict size, time and disk; write nothing.")
@as_json
@quiet
def convert(
    source: Path,
    destination: Path,
    *,
    format: str,
    classes: Path | None,
    root: Path | None,
    path_column: str | None,
    label_column: str | None,
    shard_size: int | None,
    shard_samples: int | None,
    shuffle: int | None,
    on_error: Literal["stop", "skip", "keep"],
    max_pixels: int,
    workers: int,
    overwrite: bool,
    resume: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **image: object,
) -> None:
    """Pack SOURCE into a dataset at DESTINATION.

    SOURCE is a folder of images (a sub-folder a class, or flat), a CSV, TSV or JSONL list of
    paths, WebDataset tars, TFRecord, Parquet or Arrow files, or a packed dataset. A folder that
    holds splits, such as train/ and val/, gives one dataset a split, with the same class numbers.

    Stopped in the middle, the same command goes on where it was.
    """
    entry = format_entry(format)
    options = ConvertOptions(
        image=chosen_policy(image, "keep" if entry.encoded else "decode"),
        shard_size=shard_size,
        shard_samples=shard_samples,
        shuffle=shuffle,
        on_error=on_error,
        max_pixels=max_pixels or None,
        workers=workers,
        overwrite=overwrite,
        resume=resume,
    )
    _check_apart(source, destination)
    names = None if classes is None else _read_classes(classes)
    splits = splits_of(source) if source.is_dir() else ()
    if splits and (destination / MANIFEST).exists():
        raise DatasetExistsError(
            f"{destination} is a dataset; {source} holds the splits {', '.join(splits)}, which "
            "become datasets inside of it: choose another destination",
            path=str(destination),
        )
    if splits and names is None:
        names = tuple(sorted({name for split in splits for name in classes_of(source / split)}))
    results: list[dict[str, JsonValue]] = []
    with Display(quiet=quiet) as display:
        if isinstance(options.image, Region):
            display.say("load the kernel that rewrites JPEGs (compiling it takes some ten seconds)")
            load_recode()
        for split in splits or ("",):
            display.say(f"look through {source / split}")
            opened = open_source(
                source / split,
                classes=names or None,
                root=root,
                path_column=path_column,
                label_column=label_column,
                spool=_spool(destination, dry_run=dry_run),
            )
            place = destination / split
            if dry_run:
                results.append(_predict(opened, place, format, options, display))
            elif splits and resume and not overwrite and _is_packed(place, opened, options, format):
                display.say(f"{place} is complete already")
                results.append(_facts(place, opened, 0.0))
            else:
                results.append(_pack(opened, place, format, options, display))
            if not as_json:
                display.result(_told(results[-1]))
    if as_json:
        click.echo(json.dumps(results if splits else results[0], indent=1))
    if not all(result.get("fits", True) for result in results):
        sys.exit(1)


def _pack(
    source: PackSource,
    destination: Path,
    format: str,
    options: ConvertOptions,
    display: Display,
) -> dict[str, JsonValue]:
    began = time.monotonic()
    pack(source, destination, format=format, options=options, on_progress=display)
    return _facts(destination, source, time.monotonic() - began)


def _facts(destination: Path, source: PackSource, seconds: float) -> dict[str, JsonValue]:
    with open_dataset(destination) as dataset:
        manifest, segments = dataset.manifest, dataset.segments
    actions = Counter(item.action for item in manifest.ledger)
    return {
        "dataset": str(destination),
        "format": manifest.format,
        "samples": manifest.samples,
        "classes": len(manifest.classes),
        "shards": len(manifest.shards),
        "bytes": manifest.bytes,
        "seconds": seconds,
        "litter": source.report.litter,
        "types": dict(manifest.types),
        "decoders": dict(manifest.decoders),
        **({} if segments is None else {"rewritten": segments.rewritten}),
        **{name.replace(" ", "_"): actions[name] for name in sorted(actions)},
    }


def _predict(
    source: PackSource,
    destination: Path,
    format: str,
    options: ConvertOptions,
    display: Display,
) -> dict[str, JsonValue]:
    display.say("try some samples")
    prediction = dry_run_of(source, destination, format=format, options=options)
    return {"dataset": str(destination), "fits": prediction.fits, **asdict(prediction)}


def _told(result: Mapping[str, Any]) -> str:
    if "fits" in result:
        return (
            f"{result['dataset']} would hold {result['samples']:,} samples in "
            f"{size(result['nbytes'])} (source {size(result['source_nbytes'])}; "
            f"{result['refused']:,} can't be used) and take about {clock(result['seconds'])}; "
            f"peak disk "
            f"{size(result['peak_disk'])}, {size(result['free_disk'])} free"
            + ("" if result["fits"] else ": it doesn't fit")
        )
    seconds = result["seconds"]
    text = (
        f"{result['dataset']}: {number(result['samples'], 'sample')} in "
        f"{number(result['classes'], 'class')}, {number(result['shards'], 'shard')}, "
        f"{size(result['bytes'])}"
    )
    if seconds:
        text += (
            f" in {seconds:.1f} s ({result['samples'] / seconds:,.0f} samples/s, "
            f"{size(result['bytes'] / seconds)}/s)"
        )
    remarks = [
        f"{result[action]:,} {action.replace('_', ' ')}"
        for action in ("left_out", "skipped", "kept", "noted")
        if result.get(action)
    ]
    if result["litter"]:
        remarks.append(f"{result['litter']:,} files of litter passed over")
    if "rewritten" in result:
        text += f"\n  {result['rewritten']:,} rewritten with restart segments"
    if remarks:
        text += f"\n  {', '.join(remarks)}; see 'packer inspect --ledger {result['dataset']}'"
    return text


def _read_classes(path: Path) -> tuple[str, ...]:
    try:
        names = tuple(path.read_text(encoding="utf-8").splitlines())
    except UnicodeDecodeError as error:
        raise OptionError(f"{path} is no UTF-8 text: {error}", path=str(path)) from error
    names = names[:-1] if names and not names[-1] else names
    repeated = [name for name, count in Counter(names).items() if count > 1 or not name]
    if repeated or not names:
        what = f"names {repeated[0]!r} twice or not at all" if repeated else "names no class"
        raise OptionError(f"{path} {what}; it must have one class a line", path=str(path))
    return names


def _check_apart(source: Path, destination: Path) -> None:
    """Refuses a destination inside the source, where the next run would find it as input."""
    if source.is_dir() and destination.resolve().is_relative_to(source.resolve()):
        raise OptionError(
            f"{destination} lies inside of {source}: choose a destination outside of the source",
            path=str(destination),
        )


def _is_packed(destination: Path, source: PackSource, options: ConvertOptions, format: str) -> bool:
    """Tells whether an earlier run of the same command had finished this split."""
    try:
        with open_dataset(destination) as dataset:
            return dataset.manifest.plan == plan_of(source, format=format, options=options)
    except (DatasetNotFoundError, FormatError):
        return False


def _spool(destination: Path, *, dry_run: bool) -> Path | None:
    """Puts the listing beside the destination, since a temporary directory may be small."""
    if dry_run:
        return None
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{destination.parent} can't be made: {error.strerror}", path=str(destination.parent)
        ) from error
    return destination.parent
