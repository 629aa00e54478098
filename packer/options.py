"""What a conversion may be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from packer.image_policy import ImagePolicy, to_json
from readers.decode import MAX_PIXELS
from readers.errors import OptionError
from readers.registry import FormatEntry
from readers.sample import JsonValue

OnError = Literal["stop", "skip", "keep"]
"""What to do with a sample that can't be used: end the run, leave it out, or keep its bytes."""

DEFAULT_WORKERS = 0
"""As many as there are cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """Options of `packer.convert`; those of the first group decide what is written."""

    image: ImagePolicy | None = None
    """What happens to the pixels; None keeps the bytes where the format holds files, and decodes
    where it holds pixels only."""
    shard_size: int | None = None
    """Bytes of images after which a new shard begins; None for what the format's row says, unless
    `shard_samples` is given."""
    shard_samples: int | None = None
    """Samples after which a new shard begins; None for what the format's row says."""
    shuffle: int | None = None
    """Seed of the order in which samples are packed; None keeps the source's order."""
    on_error: OnError = "stop"
    max_pixels: int | None = MAX_PIXELS
    """Pixels of the largest image that is decoded; None for no limit."""

    workers: int = DEFAULT_WORKERS
    """Threads that prepare samples; 0 for one a core."""
    overwrite: bool = False
    """Whether a dataset at the destination, or an unfinished run of another plan, is replaced."""
    resume: bool = True
    """Whether an unfinished run of the same plan is gone on with; otherwise it begins anew."""

    def __post_init__(self) -> None:
        """Validates the options.

        Raises:
            OptionError: They make no sense.
        """
        for name in ("shard_size", "shard_samples", "max_pixels"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"{name} must be 1 or more, not {value}")
        if self.workers < 0:
            raise OptionError(f"workers must be 0 (one a core) or more, not {self.workers}")
        if self.shuffle is not None and not 0 <= self.shuffle < 1 << 64:
            raise OptionError(f"the seed of shuffle must be from 0 to 2**64 - 1: {self.shuffle}")
        if self.on_error not in get_args(OnError):
            raise OptionError(f"on_error is one of {', '.join(get_args(OnError))}")

    def shard_limits(self, entry: FormatEntry) -> tuple[int | None, int]:
        """Settles the bytes and the samples after which a new shard begins."""
        if self.shard_samples is not None:
            return self.shard_size, self.shard_samples
        return self.shard_size or entry.shard_size, entry.shard_samples

    def plan(self, entry: FormatEntry, policy: ImagePolicy) -> dict[str, JsonValue]:
        """Gives the options that decide what good samples become, as they were settled."""
        shard_size, shard_samples = self.shard_limits(entry)
        return {
            "image": to_json(policy),
            "shard_size": shard_size,
            "shard_samples": shard_samples,
            "shuffle": self.shuffle,
            "max_pixels": self.max_pixels,
        }
