"""A benchmark's result, as it is kept in `results/NAME.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.contest import Contest, Goal
from benchmarks.cost import Cost
from readers.sample import JsonValue

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Result:
    """Contests of one run, with what they were held on."""

    name: str
    environment: Mapping[str, JsonValue]
    contests: tuple[Contest, ...]

    def save(self) -> Path:
        """Writes the result in the place of an earlier one."""
        path = RESULTS / f"{self.name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        return path


def load(name: str) -> Result | None:
    """Reads the result of a benchmark; None where there is none."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    raw = json.loads(path.read_text(encoding="utf-8"))
    return Result(
        raw["name"], raw["environment"], tuple(_contest(**contest) for contest in raw["contests"])
    )


def _contest(
    *,
    title: str,
    cache: str,
    samples: int,
    nbytes: int,
    costs: dict[str, list[dict[str, float]]],
    baselines: list[str],
    goals: list[dict[str, str]],
    remarks: list[str],
    columns: dict[str, dict[str, float]] | None = None,
) -> Contest:
    return Contest(
        title=title,
        cache=cache,
        samples=samples,
        nbytes=nbytes,
        costs={name: [Cost(**cost) for cost in turns] for name, turns in costs.items()},  # type: ignore[arg-type]
        baselines=tuple(baselines),
        goals=tuple(Goal(**goal) for goal in goals),  # type: ignore[arg-type]
        columns=columns or {},
        remarks=tuple(remarks),
    )
