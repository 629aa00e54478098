"""Makes a golden dataset, by hand and once: `python tests/golden/make.py NAME`.

NAME is `FORMAT-files`, `FORMAT-pixels` or `FORMAT-fixed`. What is there already is never
overwritten: a dataset of a version that was released has to be read for ever. A change of a format
raises its version and adds a new golden dataset beside the old ones.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))


def make(name: str) -> Path:
    """Makes one; see above."""
    from packer import ConvertOptions, Decode, Keep, Region, convert  # noqa: PLC0415 - found by the path above
    from packer.image_policy import ImagePolicy  # noqa: PLC0415
    from readers import Sample, open_dataset  # noqa: PLC0415
    from readers.registry import format_entry  # noqa: PLC0415
    from tests.trees import MemorySource, image_bytes, jpeg, turned  # noqa: PLC0415

    format, _, kind = name.rpartition("-")
    entry = format_entry(format)
    target = HERE / f"{name}-v{entry.version}"
    if target.exists():
        raise SystemExit(f"{target} exists, and is never made anew")
    images = (jpeg(1), turned(jpeg(2, 0, 10, 12), 6), jpeg(3, 2200, 8, 8), jpeg(4, mode="L"))
    keys = ("ant/1", "ant/été 猫.v2", "bee/" + "k" * 520, "bee/_ _")
    samples = [
        Sample(key, image, n % 2, {"n": n, "note": f"é {n}"}, f"{key}.JPEG")
        for n, (key, image) in enumerate(zip(keys, images, strict=True))
    ]
    source = MemorySource(samples, ("ant", "bee"), {"n": "int", "note": "string"})
    policies: dict[str, ImagePolicy] = {
        "files": Keep(),
        "fixed": Decode(size=(8, 12)),
        "pixels": Decode(),
        "region": Region(),
    }
    convert(source, target, format=format, options=ConvertOptions(image=policies[kind]))
    with open_dataset(target) as dataset:
        wanted = [
            {
                "key": sample.key,
                "path": sample.path,
                "label": sample.label,
                "extra": dict(sample.extra),
                "sha256": hashlib.sha256(image_bytes(sample)).hexdigest(),
                "shape": getattr(sample.image, "shape", None),
                **({} if sample.segments is None else {"segments": sample.segments.tolist()}),
            }
            for sample in dataset
        ]
    (HERE / f"{target.name}.json").write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{make(sys.argv[1])}\n")
