"""A claim on a destination: at most one run works on it, on every file system.

It is a file made with O_EXCL, so it doesn't depend on locks, which network file systems ignore or
hang on. It says who holds it. One whose process is known to be gone is taken over; one of another
machine can't be judged from here, so it stands until a person removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from pathlib import Path
from typing import Any

from readers.errors import DatasetBusyError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Claim:
    """Holds a claim until it is released."""

    def __init__(self, path: Path) -> None:
        """Takes the claim.

        Args:
            path: Where the claim file is made.

        Raises:
            DatasetBusyError: Another run holds it.
        """
        self._path = path
        self._mine = json.dumps(_this_process() | {"token": secrets.token_hex(8)}).encode()
        while not self._made():
            try:
                held = path.read_bytes()
            except FileNotFoundError:
                continue
            if not _is_stale(held):
                raise DatasetBusyError(
                    f"{path.parent} is held by {_describe(held)}; wait for that run, or, if it is "
                    f"gone, remove {path}",
                    path=str(path),
                )
            self._remove(held)

    def check(self) -> None:
        """Makes sure that the claim still stands.

        Raises:
            DatasetBusyError: A person removed it, or another run holds it.
        """
        try:
            held = self._path.read_bytes()
        except FileNotFoundError:
            held = b""
        if held != self._mine:
            raise DatasetBusyError(
                f"the claim {self._path} was taken away: now it is held by {_describe(held)}",
                path=str(self._path),
            )

    def release(self) -> None:
        """Gives the claim up, unless a person gave it to another run meanwhile."""
        with contextlib.suppress(FileNotFoundError):
            if self._path.read_bytes() == self._mine:
                self._path.unlink()

    def _made(self) -> bool:
        """Makes the file with its whole content at once, where the storage has links."""
        draft = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        draft.write_bytes(self._mine)
        try:
            os.link(draft, self._path)
        except FileExistsError:
            return False
        except OSError:
            return self._made_without_links()
        finally:
            draft.unlink()
        return True

    def _made_without_links(self) -> bool:
        try:
            with self._path.open("xb") as stream:
                stream.write(self._mine)
        except FileExistsError:
            return False
        return True

    def _remove(self, held: bytes) -> None:
        """Removes a stale claim, unless another run was quicker and the claim is now that run's."""
        aside = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return
        if aside.read_bytes() != held:
            with contextlib.suppress(FileExistsError):
                os.link(aside, self._path)
        aside.unlink()


def _this_process() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "boot": _boot(),
        "processes": _namespace(),
        "pid": os.getpid(),
        "started": _start_time(os.getpid()),
    }


def _boot() -> str | None:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _namespace() -> int | None:
    """Names the set of processes that this one can see: containers may share the host's name."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return None


def _start_time(pid: int) -> str | None:
    """Tells two processes of one number apart; None where the system doesn't say, or it's dead."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _is_stale(held: bytes) -> bool:
    try:
        holder = json.loads(held)
        pid, host = int(holder["pid"]), holder["host"]
    except (ValueError, KeyError, TypeError):
        return False
    if host != socket.gethostname():
        return False
    if holder.get("boot") != _boot():
        return True
    if holder.get("processes") != _namespace():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return bool(holder.get("started") != _start_time(pid))


def _describe(held: bytes) -> str:
    try:
        holder = json.loads(held)
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):
        return "a run that left no readable claim"
