"""Rules on the stage that takes the time: storage, decode, transform, collate, or no CPU to be had.

Time divides exactly: wall = on a CPU + waiting for one + blocked. What was blocked was a disk only
where bytes came from storage or page faults waited for it: `read_bytes > 0` alone would blame the
disk for a decode-bound run on cold files, where it was worth 4 %.
"""

from __future__ import annotations

from readers.monitor.amounts import percent
from readers.monitor.columns import counts, mean_of_known, seconds, share
from readers.monitor.figures import Figures
from readers.monitor.finding import Finding
from readers.monitor.rules.remedies import (
    deeper,
    more_workers,
    packed,
    remote,
    smaller,
    source,
    staged,
)
from readers.monitor.worker_count import WorkerCount

_PAGE = 4096
"""Bytes; less than that a batch is no reading of samples."""


def storage(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 1: reads wait for the disk."""
    blocked = _blocked_in_dataset(figures)
    if blocked is None or not _disk(figures) or remote(figures.facts):
        return None
    return _finding(
        figures,
        rule="storage",
        broken=_blocked_batches(figures),
        gone=blocked,
        verdict=f"reading waits for the disk {percent(blocked)} of the time",
        evidence=_read_evidence(figures),
        remedy=f"{packed(figures.facts)}; {staged(figures.facts)}{more_workers(figures, count)}",
    )


def remote_storage(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 2: reads wait, but for no local disk."""
    facts = figures.facts
    blocked = _blocked_in_dataset(figures)
    if blocked is None or facts.pixels or (_disk(figures) and not remote(facts)):
        return None
    where = f"{facts.storage} storage" if remote(facts) else "a remote store or a lock"
    more = more_workers(figures, count) or f"; more workers, or {deeper(facts)}"
    nearer = f"; {packed(facts)}; {staged(facts)}" if remote(facts) or not facts.storage else ""
    return _finding(
        figures,
        rule="remote-storage",
        broken=_blocked_batches(figures),
        gone=blocked,
        verdict=f"reading waits for {where} {percent(blocked)} of the time",
        evidence=_read_evidence(figures),
        remedy=f"ask for more at a time{more}{nearer};"
        " `packer monitor stacks PID` shows what a worker waits for",
    )


def pixels_from_afar(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 2 for decoded pixels: they cost a network more bytes than they save in decoding."""
    facts = figures.facts
    blocked = _blocked_in_dataset(figures)
    if blocked is None or not facts.pixels or not (remote(facts) or not _disk(figures)):
        return None
    return _finding(
        figures,
        rule="pixels-over-network",
        broken=_blocked_batches(figures),
        gone=blocked,
        verdict=f"decoded pixels come over {facts.storage or 'a network'}: several times the bytes"
        " of the JPEGs",
        evidence=_read_evidence(figures),
        remedy=f"{staged(facts)}; or keep the images encoded there:"
        f" `packer convert IMAGES PACKED --format webdataset`{more_workers(figures, count)}",
    )


def decode(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 3: the CPU is the limit, and the dataset has the most of it.

    Waiting for a CPU counts as wanting it, as long as it is the smaller part.
    """
    on_cpu, wanted = share(figures.cpu, figures.work), share(figures.cpu_wanted, figures.work)
    dataset = share(figures.dataset, figures.fetch)
    facts = figures.facts
    if on_cpu is None or wanted is None or dataset is None or _largest(figures) != "dataset":
        return None
    if wanted <= figures.limits.on_cpu or on_cpu < wanted / 2:
        return None
    known = share(seconds(figures.recording.batches, "decode"), figures.dataset)
    if known is None:
        work = "the dataset's work on the CPU, mostly decoding where it holds images,"
        verdict = f"{work} takes {percent(dataset)} of the time"
    elif known > 1 / 2:
        verdict = f"decoding takes {percent(known * dataset)} of the time"
    else:
        part = percent(known * dataset)
        verdict = f"the dataset's work on the CPU takes {percent(dataset)}, decoding {part}"
    evidence: dict[str, float | int | str] = {"on_cpu_share": on_cpu, "dataset_share": dataset}
    return _finding(
        figures,
        rule="decode",
        broken=figures.broken(figures.cpu_wanted, figures.work, figures.limits.on_cpu),
        gone=dataset * on_cpu,
        verdict=verdict,
        evidence=evidence if known is None else evidence | {"decode_share": known * dataset},
        remedy=f"decode fewer pixels: {smaller(facts)}; or none:"
        f" `packer convert {source(facts)} PIXELS --format npy`{more_workers(figures, count)}",
    )


def transform(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 4: the user's transform takes more than half of the fetch."""
    part = share(figures.transform, figures.fetch)
    if part is None or part <= figures.limits.transform:
        return None
    return _finding(
        figures,
        rule="transform",
        broken=figures.broken(figures.transform, figures.fetch, figures.limits.transform),
        gone=part,
        verdict=f"the transform takes {percent(part)} of the time",
        evidence={"transform_share": part, "transform_seconds": float(figures.transform.mean())},
        remedy="transform whole batches, on the GPU where there is one; crop before other work; do"
        " what is the same every epoch while packing: `packer convert … --image resize --side 256`"
        f"{more_workers(figures, count)}",
    )


def collate(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 5: putting samples together takes more than a fifth of the fetch."""
    part = share(figures.collate, figures.fetch)
    if part is None or part <= figures.limits.collate:
        return None
    return _finding(
        figures,
        rule="collate",
        broken=figures.broken(figures.collate, figures.fetch, figures.limits.collate),
        gone=part,
        verdict=f"collating takes {percent(part)} of the time",
        evidence={
            "collate_share": part,
            "collate_seconds": float(figures.collate.mean()),
            "batch_bytes": figures.batch_bytes or "unknown",
        },
        remedy="collate uint8 and convert on the GPU; fill a buffer made beforehand, or let"
        f" `MonitoredLoader` decode straight into the batch{more_workers(figures, count)}",
    )


def contention(figures: Figures, _count: WorkerCount | None) -> Finding | None:
    """Rule 6: workers are ready to run, and no CPU is free."""
    part = share(figures.queued, figures.fetch)
    facts = figures.facts
    if part is None or part <= figures.limits.queued:
        return None
    own = facts.workers > facts.cores
    cause = f"{facts.workers} workers share {facts.cores} cores" if own else "others use the cores"
    remedy = (
        f"workers={facts.cores}"
        if own
        else "one thread for each library in a worker (OMP_NUM_THREADS=1, cv2.setNumThreads(0),"
        " torch.set_num_threads(1)); see what else runs here (`top`)"
    )
    return _finding(
        figures,
        rule="contention",
        broken=figures.broken(figures.queued, figures.fetch, figures.limits.queued),
        gone=part,
        verdict=f"workers wait for a CPU {percent(part)} of the time: {cause}",
        evidence={"queued_share": part, "workers": facts.workers, "cores": facts.cores},
        remedy=remedy,
    )


def unexplained(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 0 where no other tells why: the largest stage is all that's known."""
    stage = _largest(figures)
    part = share(getattr(figures, stage), figures.fetch)
    if part is None or figures.wait_share is None:
        return None
    more = more_workers(figures, count).removeprefix("; ")
    look = "`packer monitor stacks PID` of a worker shows what it does"
    return _finding(
        figures,
        rule="input-bound",
        broken=1.0,
        gone=part,
        verdict=f"the loop waits {percent(figures.wait_share)} of the time; {stage} takes the most"
        f" of a batch, {percent(part)}",
        evidence={
            f"{stage}_share": part,
            "busy_share": figures.mean_busy,
            "on_cpu_share": "unknown" if figures.cpu_share is None else figures.cpu_share,
        },
        remedy=f"{more}; {look}" if more else look,
    )


def _largest(figures: Figures) -> str:
    stages = ("dataset", "transform", "collate")
    return max(stages, key=lambda name: float(getattr(figures, name).sum()))


def _blocked_in_dataset(figures: Figures) -> float | None:
    blocked = share(figures.blocked, figures.work)
    if blocked is None or blocked <= figures.limits.blocked or _largest(figures) != "dataset":
        return None
    return blocked


def _blocked_batches(figures: Figures) -> float:
    return figures.broken(figures.blocked, figures.work, figures.limits.blocked)


def _from_storage(figures: Figures) -> float | None:
    batches = figures.recording.batches
    return share(counts(batches, "storage_bytes"), counts(batches, "read_calls_bytes"))


def _faults(figures: Figures) -> float:
    return mean_of_known(counts(figures.recording.batches, "major_faults")) or 0.0


def _disk(figures: Figures) -> bool:
    came = mean_of_known(counts(figures.recording.batches, "storage_bytes")) or 0.0
    cold = _from_storage(figures) or 0.0
    return _faults(figures) >= 1 or (came >= _PAGE and cold > figures.limits.from_storage)


def _read_evidence(figures: Figures) -> dict[str, float | int | str]:
    cold = _from_storage(figures)
    blocked = share(figures.blocked, figures.work)
    return {
        "blocked_share": blocked or 0.0,
        "read_from_storage_share": "unknown" if cold is None else min(1.0, cold),
        "major_faults_a_batch": _faults(figures),
        "storage": figures.facts.storage or "unknown",
    }


def _finding(
    figures: Figures,
    *,
    rule: str,
    broken: float,
    gone: float,
    verdict: str,
    evidence: dict[str, float | int | str],
    remedy: str,
) -> Finding | None:
    severity = figures.severity(broken)
    if severity is None:
        return None
    waits = {} if figures.wait_share is None else {"wait_share": figures.wait_share}
    return Finding(
        rule=rule,
        severity=severity,
        verdict=verdict,
        evidence={**waits, **evidence},
        remedy=remedy,
        weight=gone,
        factor=figures.factor(gone),
    )
