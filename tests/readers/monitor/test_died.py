"""Workers that are killed have died; those that a loader ends have not, whatever they were at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest

_MEGENGINE = os.environ.get("PACKER_MEGENGINE_PYTHON")
_ROOT = Path(__file__).parents[3]
_FRAMEWORKS = ("torch", "paddle", "megengine", "readers", "threads")
_ENDINGS = ("whole", "left", "closed", "error", "killed")

_SCRIPT = """
import gc, json, os, signal, sys, threading, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from readers.monitor import LoaderMonitor
from readers.monitor.diagnosis import diagnose
from readers.monitor.run import read_run

FRAMEWORK, PLACE = sys.argv[1], Path(sys.argv[2])
held = []

class Slow:
    fails = False
    def __init__(self): pass
    def __len__(self): return 24
    def __getitem__(self, index):
        time.sleep(0.04)
        if self.fails and index == 5:
            raise KeyError("planted")
        return index

if FRAMEWORK == "torch":
    import torch.utils.data
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.05  # it waits no longer for its workers
    def load(data):
        return torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
elif FRAMEWORK == "paddle":
    import paddle.io
    class Slow(Slow, paddle.io.Dataset): pass
    def load(data):
        return paddle.io.DataLoader(data, batch_size=4, num_workers=2)
elif FRAMEWORK == "megengine":
    from megengine.data import DataLoader, SequentialSampler
    from megengine.data.dataset import Dataset
    class Slow(Slow, Dataset): pass
    def load(data):
        return DataLoader(data, SequentialSampler(data, batch_size=4), num_workers=2)

def ours(data, monitor):
    from readers.loader import MonitoredLoader
    kind = "fork" if FRAMEWORK == "readers" else "thread"
    return MonitoredLoader(data, 4, workers=2, worker_kind=kind, monitor=monitor)

def watch(run, over, died):
    while not over.wait(0.005):
        died |= {state.pid for state in read_run(run).workers if state.died}

def play(ending):
    run = PLACE / ending
    monitor = LoaderMonitor(run=run)
    data = Slow()
    data.fails = ending == "error"
    own = FRAMEWORK in {"readers", "threads"}
    loader = ours(data, monitor) if own else monitor.attach(load(data))
    died, over, victim = set(), threading.Event(), None
    watcher = threading.Thread(target=watch, args=(run, over, died))
    iterator = iter(loader)
    watcher.start()  # no thread of this test is there when workers are forked
    try:
        next(iterator)
        time.sleep(0.06)
        if ending == "killed":
            busy = [state for state in monitor.snapshot().workers if state.stage != "idle"]
            victim = busy[0].pid
            os.kill(victim, signal.SIGKILL)
        if ending == "closed" and own:
            loader.close()
        elif ending in {"whole", "error", "killed"}:
            list(iterator)
    except (RuntimeError, KeyError, SystemError) as error:
        del error
    seen = [found.rule for found in diagnose(monitor.recording())]
    if FRAMEWORK == "paddle":  # 3.3 may wait for ever for workers of a loop that was left
        held.append(iterator._batches)
    del iterator
    for process in held[-1]._workers if held else ():
        process.terminate()
    gc.collect()
    time.sleep(0.05)
    seen += [found.rule for found in diagnose(monitor.recording())]
    over.set()
    watcher.join()
    monitor.close()
    if own:
        loader.close()
    kept = [found.rule for found in diagnose(read_run(run))]
    return {"seen": seen, "kept": kept, "died": sorted(died), "victim": victim}

answers = {ending: play(ending) for ending in json.loads(sys.argv[3])}
(PLACE / "answers.json").write_text(json.dumps(answers))
os._exit(0)
"""


@lru_cache
def _answers(framework: str, place: Path) -> dict[str, dict[str, object]]:
    """Plays all endings in one process, for the import's sake."""
    python = _MEGENGINE if framework == "megengine" else sys.executable
    assert python is not None
    endings = [ending for ending in _ENDINGS if (framework, ending) != ("threads", "killed")]
    done = subprocess.run(
        [python, "-W", "ignore", "-c", _SCRIPT, framework, str(place), json.dumps(endings)],
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, dict[str, object]] = json.loads((place / "answers.json").read_text())
    return answers


@pytest.mark.parametrize("ending", _ENDINGS)
@pytest.mark.parametrize("framework", _FRAMEWORKS)
def test_who_died(framework: str, ending: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if framework == "megengine":
        if not _MEGENGINE:
            pytest.skip("PACKER_MEGENGINE_PYTHON names no Python 3.10 with MegEngine")
    elif framework in {"torch", "paddle"} and find_spec(framework) is None:
        pytest.skip(f"{framework} isn't installed")
    if (framework, ending) == ("threads", "killed"):
        pytest.skip("a thread can't be killed")
    answer = _answers(framework, tmp_path_factory.getbasetemp() / f"died-{framework}")[ending]
    if ending == "killed":
        assert answer["died"] in ([], [answer["victim"]]), (
            "the loader may notice before the watcher"
        )
        assert answer["seen"] == ["died", "died"]
        assert answer["kept"] == ["died"]
    else:
        assert (answer["seen"], answer["kept"], answer["died"]) == ([], [], [])
