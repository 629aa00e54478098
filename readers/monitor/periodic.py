"""A thread of the main process that looks after a run while an epoch goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Periodic:
    """Calls something every so often, in a daemon thread, between `start` and `stop`.

    The thread isn't kept between epochs, because the next one may fork workers.
    """

    def __init__(self, call: Callable[[], object], seconds: float) -> None:
        self._call = call
        self._seconds = seconds
        self._users = 0
        # `stop` may come from the garbage collector, within any of these methods.
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread, unless it runs for somebody else already."""
        with self._lock:
            self._users += 1
            if self._users > 1 and self._thread is not None:
                return
            self._stopped = stopped = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(stopped,), name="packer-monitor", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Tells the thread to make its last call, when nobody needs it any longer."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._stopped.set()

    def settle(self) -> None:
        """Waits for a thread that was told to stop."""
        with self._lock:
            thread = self._thread if self._stopped.is_set() else None
        if thread is not None:
            thread.join()

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._seconds):
            self._call()
        self._call()
