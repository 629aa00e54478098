"""`packer inspect`: what a dataset, or one sample of it, is."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
from PIL import Image as PillowImage

from packer.commands.order import order_facts
from packer.commands.parameters import as_json, place
from packer.image_policy import from_json, policy_name
from packer.recode.markers import Markers
from readers.dataset import Dataset
from readers.header import IMAGE_TYPES
from readers.manifest import Manifest
from readers.opening import open_dataset
from readers.probe import Probe
from readers.sample import Image, JsonValue, Sample, as_rgb, is_encoded
from readers.survey import Survey

_BATCH = 64
_KILO, _MEGA = 1e3, 1e6
_CLASSES_SHOWN = 8


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("dataset", type=place)
@click.argument("index", type=int, required=False)
@click.option(
    "--save",
    type=place,
    help="Write the image to this file: a file's bytes as they are, pixels as PNG or npy.",
)
@click.option("--ledger", is_flag=True, help="List the files that were left out, kept or noted.")
@click.option(
    "--order",
    is_flag=True,
    help="Tell which shuffle suits the storage, and how well each mixes the samples.",
)
@click.option(
    "--block", type=click.IntRange(min=1), help="--order: samples of a block, of a shuffle to try."
)
@click.option("--buffer", type=click.IntRange(min=1), help="--order: samples shuffled together.")
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=_BATCH, show_default=True, help="--order."
)
@as_json
def inspect(
    dataset: Path,
    index: int | None,
    *,
    save: Path | None,
    ledger: bool,
    order: bool,
    block: int | None,
    buffer: int | None,
    batch_size: int,
    as_json: bool,
) -> None:
    """Describe DATASET, or its sample number INDEX (negative: from the end)."""
    with open_dataset(dataset) as opened:
        if index is None:
            if save is not None:
                raise click.UsageError("--save needs an INDEX")
            facts = _dataset_facts(opened)
            if order:
                facts |= order_facts(opened, block, buffer, batch_size)
        else:
            try:
                facts = _sample_facts(opened, index, save)
            except IndexError as error:
                raise click.UsageError(str(error)) from error
        entries = opened.manifest.ledger if ledger else ()
    if as_json:
        if ledger:
            facts["ledger"] = [asdict(entry) for entry in entries]
        click.echo(json.dumps(facts, indent=1))
        return
    facts.pop("measured", None)  # which "because" says in words
    for name, value in facts.items():
        click.echo(f"{name:13} {_shown(value)}")
    for entry in entries:
        click.echo(f"  {entry.action}: {entry.path!r}: {entry.reason}")


def _dataset_facts(dataset: Dataset) -> dict[str, JsonValue]:
    manifest = dataset.manifest
    actions: dict[str, JsonValue] = {}
    for item in manifest.ledger:
        seen = actions.get(item.action, 0)
        actions[item.action] = (seen if isinstance(seen, int) else 0) + 1
    image = from_json(manifest.options["image"])
    return {
        "dataset": str(dataset.root),
        "format": f"{manifest.format}, version {manifest.version}",
        "samples": manifest.samples,
        "bytes": manifest.bytes,
        "shards": len(manifest.shards),
        "classes": list(manifest.classes),
        "fields": dict(manifest.fields),
        "stored": _stored(dataset),
        "types": dict(manifest.types),
        "decoded by": dict(manifest.decoders),
        **_rewritten(dataset),
        "image policy": policy_name(image),
        **{name: str(value) for name, value in asdict(image).items()},
        "order": "as in the source"
        if manifest.options["shuffle"] is None
        else f"shuffled with seed {manifest.options['shuffle']}",
        "source": dict(manifest.source),
        "ledger": actions,
        "packed by": f"dataset-packer {manifest.packer_version}",
        **_storage_facts(dataset.survey(), manifest),
    }


def _rewritten(dataset: Dataset) -> dict[str, JsonValue]:
    segments = dataset.segments
    return {} if segments is None else {"rewritten": segments.rewritten}


def _restarts(sample: Sample) -> dict[str, JsonValue]:
    """Tells of the restart segments of a rewritten JPEG."""
    if sample.segments is None or not is_encoded(sample.image):
        return {}
    markers = Markers(sample.image)
    markers.next_scan()
    return {"segments": len(sample.segments), "MCUs each": markers.interval}


def _storage_facts(survey: Survey, manifest: Manifest) -> dict[str, JsonValue]:
    access = survey.choice.access
    facts: dict[str, JsonValue] = {
        "storage": survey.storage.describe(),
        "access": {name: value for name, value in asdict(access).items() if value is not None},
        "because": survey.choice.reason,
    }
    if survey.probe is not None:
        facts["measured"] = asdict(survey.probe)
    if manifest.pixels and survey.storage.kind == "network":
        facts["warning"] = _far_pixels(manifest.bytes / manifest.samples, survey.probe)
    return facts


def _far_pixels(nbytes: float, probe: Probe | None) -> str:
    limit = ""
    if probe is not None:
        rate = f"{probe.bandwidth / _MEGA:,.0f} MB/s were measured"
        limit = f", and {rate}: {probe.bandwidth / nbytes:,.0f} samples/s at the most"
    return (
        f"pixels on network storage take {nbytes / _KILO:,.0f} kB a sample{limit}; keep encoded "
        "images there, and their pixels on a local disk (readers.PixelCache)"
    )


def _stored(dataset: Dataset) -> str:
    if not dataset.manifest.pixels:
        return "encoded images"
    kind = "RGB" if dataset.manifest.color == "rgb" else "YUV 4:2:0"
    shape = dataset.manifest.shape
    size = "mixed sizes" if shape is None else f"{shape[0]} x {shape[1]}"
    return f"{kind} pixels, {size}"


def _sample_facts(dataset: Dataset, index: int, save: Path | None) -> dict[str, JsonValue]:
    sample = dataset[index]
    row = index % len(dataset)
    rows = dataset.index
    if save is not None:
        _save(sample.image, save)
    return {
        "index": row,
        "key": sample.key,
        "path": sample.path,
        "label": sample.label,
        "class": None if sample.label is None else dataset.classes[sample.label],
        "type": IMAGE_TYPES[rows.types.item(row)],
        "height": rows.heights.item(row),
        "width": rows.widths.item(row),
        "orientation": rows.orientations.item(row),
        "bytes": rows.lengths.item(row),
        "shard": dataset.manifest.shards[rows.shards.item(row)].name,
        "offset": rows.offsets.item(row),
        "checksum": rows.checksums[row].tobytes().hex(),
        **_restarts(sample),
        "extra": dict(sample.extra),
    }


def _save(image: Image, path: Path) -> None:
    """Writes a file's bytes as they are, and pixels in the type that the suffix names."""
    image = as_rgb(image)
    if is_encoded(image):
        path.write_bytes(image)
    elif path.suffix == ".npy":
        np.save(path, image)
    else:
        try:
            PillowImage.fromarray(image).save(path)
        except ValueError as error:
            raise click.UsageError(f"--save {path}: {error}; end it in .png or .npy") from error


def _shown(value: JsonValue) -> str:
    if isinstance(value, list):
        shown = ", ".join(str(item) for item in value[:_CLASSES_SHOWN])
        return f"{len(value)}: {shown}{' …' if len(value) > _CLASSES_SHOWN else ''}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
