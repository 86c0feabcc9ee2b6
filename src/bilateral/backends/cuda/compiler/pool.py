"""Compile kernels in helper processes, those that somebody waits for first.

One process imports what the compiler needs and makes children. It starts when the first kernel is
missing, and ends when it has had nothing to do for a while. It takes seconds to start; until then,
threads of this process compile.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from bilateral.backends.cuda.compiler import disk
from bilateral.backends.cuda.compiler.variant import Variant, compile_variant

_MAX_CHILDREN = 16
_QUEUED_PER_CHILD = 1.25
"""Requests on their way per child: few, so that an urgent one does not wait for others."""
_IDLE_SECONDS = 30.0
_THREADS = 3
"""Threads that compile until the helpers are ready. More do not help: only one runs Python."""
_PATIENCE = 60.0
"""Longest time, in seconds, to wait for one kernel."""

Request = tuple[Variant, int]


class Pool:
    """The helper processes of this process."""

    def __init__(self, children: int | None = None) -> None:
        self._children = children or max(1, min(_MAX_CHILDREN, os.cpu_count() or 1))
        self._changed = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._running: dict[int, Request] = {}
        self._known: set[Request] = set()
        """All requests so far that are waiting, running, done or compiled by this process."""
        self._number = 0
        self._process: subprocess.Popen[str] | None = None
        self._ready = self._dead = False
        self._timer: threading.Timer | None = None

    def request(self, variants: Iterable[Variant], target: int) -> None:
        """Compile variants when there is time; start the helpers if that is needed."""
        with self._changed:
            new = [(v, target) for v in variants if (v, target) not in self._known]
            self._known.update(new)
            self._waiting.extend(new)
            if self._waiting and self._process is None and not self._dead:
                self._start()
            self._send()

    def wait_for(self, variant: Variant, target: int) -> bool:
        """Wait for one variant, before all others; False if the caller must compile it."""
        request = variant, target
        with self._changed:
            if self._dead:
                return False
            if request in self._waiting:
                self._waiting.remove(request)
            elif request in self._known:
                self._changed.wait_for(lambda: self._dead or not self._open(request), _PATIENCE)
                return not self._open(request)
            self._known.add(request)
            if not self._ready:
                return False
            self._waiting.appendleft(request)
            self._send(urgent=True)
            self._changed.wait_for(lambda: self._dead or not self._open(request), _PATIENCE)
            return not self._open(request)

    def wait(self, seconds: float) -> None:
        """Wait until all requests are done, or until the helpers have ended, but not longer."""
        with self._changed:
            self._changed.wait_for(self._is_over, seconds)

    def _is_over(self) -> bool:
        return self._dead or not (self._waiting or self._running)

    @property
    def left(self) -> int:
        """Number of requests that helpers have yet to do."""
        with self._changed:
            return 0 if self._dead else len(self._waiting) + len(self._running)

    def close(self) -> None:
        """End the helpers."""
        with self._changed:
            process, self._process = self._process, None
            self._ready = False
            if self._timer is not None:
                self._timer.cancel()
        if process is not None:
            process.terminate()
            process.wait()

    def _open(self, request: Request) -> bool:
        return request in self._waiting or request in self._running.values()

    def _start(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "CUDA_VISIBLE_DEVICES": "",
        }
        command = [sys.executable, "-m", "bilateral.backends.cuda.compiler.worker"]
        try:
            self._process = subprocess.Popen(
                [*command, str(self._children)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                text=True,
            )
        except OSError:
            self._dead = True
            return
        atexit.register(self.close)
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        for _ in range(min(_THREADS, self._children - 1)):
            threading.Thread(target=self._compile_until_ready, daemon=True).start()

    def _compile_until_ready(self) -> None:
        """Compile requests in this thread until the helpers are ready."""
        while True:
            with self._changed:
                if self._ready or self._dead or self._process is None or not self._waiting:
                    return
                self._number += 1
                number, request = self._number, self._waiting.popleft()
                self._running[number] = request
            with suppress(Exception):  # whoever needs the kernel compiles it again
                disk.write(*request, *compile_variant(*request))
            with self._changed:
                self._running.pop(number, None)
                self._changed.notify_all()

    def _listen(self, process: Any) -> None:
        """Take the answers of the helpers until they end."""
        for line in process.stdout:
            with self._changed:
                if line == "ready\n":
                    self._ready = True
                else:
                    self._running.pop(int(line.split(" ", 1)[0]), None)
                self._send()
                self._changed.notify_all()
        with self._changed:
            if self._process is process:  # it ended by itself
                self._process, self._ready, self._dead = None, False, True
            self._waiting.clear()
            self._running.clear()
            self._changed.notify_all()

    def _send(self, *, urgent: bool = False) -> None:
        process = self._process
        if process is None or not self._ready:
            return
        assert process.stdin is not None
        room = int(self._children * _QUEUED_PER_CHILD) + urgent - len(self._running)
        try:
            for _ in range(min(room, len(self._waiting))):
                request = self._waiting.popleft()
                self._number += 1
                self._running[self._number] = request
                variant, target = request
                process.stdin.write(f"{self._number} {target} {variant.to_json()}\n")
            process.stdin.flush()
        except OSError:
            return  # `_listen` notices that the helpers have ended
        self._set_timer()

    def _set_timer(self) -> None:
        """End the helpers if they have nothing to do for a while."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not (self._waiting or self._running):
            self._timer = threading.Timer(_IDLE_SECONDS, self.close)
            self._timer.daemon = True
            self._timer.start()


pool = Pool()
"""The helpers that all kernels share."""
