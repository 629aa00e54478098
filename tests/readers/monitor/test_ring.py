"""The ring: what one thread writes, any process reads, whatever happens meanwhile."""

from __future__ import annotations

import os
import struct
import threading
from multiprocessing import get_context
from multiprocessing.context import ForkContext, ForkServerContext, SpawnContext
from pathlib import Path
from typing import TypeAlias

import pytest

from readers.errors import CorruptDatasetError
from readers.monitor.collector import Collector
from readers.monitor.process import alive, started
from readers.monitor.record import UNKNOWN
from readers.monitor.ring import CAPACITY, HEARTBEAT, STAGE_BITS, RingReader, RingWriter
from readers.monitor.words import words_of
from readers.span import COLLATE

Context: TypeAlias = ForkContext | SpawnContext | ForkServerContext


def write(directory: Path, count: int, worker: int = 0) -> RingWriter:
    ring = RingWriter(directory, kind=1, width=3, worker=worker)
    for number in range(count):
        ring.append((number, -number, 1 << 62))
    return ring


def only(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def drained(reader: RingReader) -> list[list[int]]:
    return [list(words_of(record)) for record in reader.drain()]


def test_records_come_back_once_and_in_order(tmp_path: Path) -> None:
    writer = write(tmp_path, 5)
    reader = RingReader(only(tmp_path))
    assert drained(reader) == [[number, -number, 1 << 62] for number in range(5)]
    assert reader.drain() == []
    writer.append((7, 8, 9))
    assert drained(reader) == [[7, 8, 9]]
    assert (reader.pid, reader.thread) == (os.getpid(), threading.get_native_id())
    assert alive(reader.pid, reader.thread, reader.start)


def test_overwritten_records_are_counted(tmp_path: Path) -> None:
    write(tmp_path, CAPACITY + 40)
    reader = RingReader(only(tmp_path))
    assert [words[0] for words in drained(reader)] == list(range(40, CAPACITY + 40))
    assert reader.lost == 40


def test_torn_and_stale_records_are_lost_not_given(tmp_path: Path) -> None:
    write(tmp_path, 3)
    path = only(tmp_path)
    data = bytearray(path.read_bytes())
    record = 4 * 8
    data[128 + 8] ^= 1
    data[128 + 2 * record : 128 + 3 * record] = data[128 + record : 128 + 2 * record]
    path.write_bytes(data)
    reader = RingReader(path)
    assert drained(reader) == [[1, -1, 1 << 62]]
    assert reader.lost == 2


def test_heartbeat_is_one_word(tmp_path: Path) -> None:
    writer = write(tmp_path, 0)
    writer.words[HEARTBEAT] = 123456789 << STAGE_BITS | COLLATE
    assert RingReader(only(tmp_path)).heartbeat == (COLLATE, 123456789)


@pytest.mark.parametrize(
    "context", [get_context("fork"), get_context("spawn"), get_context("forkserver")]
)
def test_processes_write_their_own(tmp_path: Path, context: Context) -> None:
    process = context.Process(target=write, args=(tmp_path, 4, 3))
    process.start()
    process.join()
    reader = RingReader(only(tmp_path))
    assert len(reader.drain()) == 4
    assert (reader.pid, reader.worker) == (process.pid, 3)
    assert not alive(reader.pid, reader.thread, reader.start)


def test_threads_write_their_own(tmp_path: Path) -> None:
    threads = [threading.Thread(target=write, args=(tmp_path, 2, number)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    readers = [RingReader(path) for path in tmp_path.iterdir()]
    assert sorted(reader.worker for reader in readers) == [0, 1, 2]
    assert len({reader.thread for reader in readers} | {os.getpid()}) == 4


def test_a_ring_is_read_while_it_is_written(tmp_path: Path) -> None:
    write(tmp_path, 0)
    process = get_context("fork").Process(target=write, args=(tmp_path / "w", 20_000))
    (tmp_path / "w").mkdir()
    process.start()
    while not (paths := list((tmp_path / "w").glob("*.ring"))):
        pass
    reader = RingReader(paths[0])
    seen = []
    while process.is_alive():
        seen += [words[0] for words in drained(reader)]
    process.join()
    seen += [words[0] for words in drained(reader)]
    assert seen == sorted(seen)
    assert len(seen) + reader.lost == 20_000


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("empty", lambda _: b""),
        ("short", lambda data: data[:100]),
        ("cut", lambda data: data[:-8]),
        ("odd", lambda data: data[:-3]),
        ("foreign", lambda data: b"\x7fELF" + data[4:]),
        ("newer", lambda data: data[:8] + struct.pack("=q", 2) + data[16:]),
        ("huge width", lambda data: data[:24] + struct.pack("=q", 1 << 60) + data[32:]),
        ("no capacity", lambda data: data[:32] + struct.pack("=q", 0) + data[40:]),
        ("negative", lambda data: data[:32] + struct.pack("=q", -1) + data[40:]),
    ],
)
def test_garbage_is_named(tmp_path: Path, name: str, damage: object) -> None:
    write(tmp_path, 2)
    path = only(tmp_path)
    assert callable(damage), name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CorruptDatasetError, match="no ring of a loader monitor"):
        RingReader(path)


def test_a_ring_whose_count_went_back_is_named(tmp_path: Path) -> None:
    writer = write(tmp_path, 2)
    reader = RingReader(only(tmp_path))
    reader.drain()
    writer.words[9] = -5
    with pytest.raises(CorruptDatasetError, match="-5 records after 2"):
        reader.drain()


def test_the_collector_refuses_garbage_once(tmp_path: Path) -> None:
    (tmp_path / "1-1.ring").write_bytes(b"garbage!" * 40)
    collector = Collector(tmp_path)
    with pytest.raises(CorruptDatasetError):
        collector.collect()
    collector.collect()
    assert collector.failures == 1


def test_a_process_that_is_gone_has_no_start() -> None:
    process = get_context("fork").Process(target=int)
    process.start()
    process.join()
    assert process.pid is not None
    assert started(process.pid, process.pid) == UNKNOWN
