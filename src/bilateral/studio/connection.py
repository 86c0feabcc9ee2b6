"""One page: receive its messages, compute in a thread, send pictures.

Messages are handled in order. Requests for pictures are not queued: the newest wins. In the middle
of a stroke, only previews are made, and each is finished, so that a person who paints without a
pause sees progress. The full size is made beside the previews of newer strokes, and cancelled by
the callback of its solve as soon as one arrives.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from bilateral import io
from bilateral.io.options import Options
from bilateral.studio.examples import load_example
from bilateral.studio.limits import Limits, Refused, plain_message
from bilateral.studio.messages import Message, MessageError, pack, unpack
from bilateral.studio.tools.base import Check, Stale, Tool
from bilateral.studio.tools.colorize import ColorizeTool
from bilateral.studio.tools.cut import CutTool
from bilateral.studio.tools.depth import DepthTool
from bilateral.studio.tools.refocus import RefocusTool
from bilateral.studio.workspace import TOOLS, View, Workspace
from bilateral.tasks import stereo_depth

Array = NDArray[Any]

_STRIP_BYTES = 500_000
"""Pictures are sent in strips of rows: a newer one can overtake, and browsers read them faster."""
_MOST_JOBS = 64
_EXPECTED = (Refused, io.FileError, MessageError, ValueError, TypeError)


class Connection:
    """The server's side of one page."""

    def __init__(
        self,
        socket: WebSocket,
        limits: Limits,
        threads: ThreadPoolExecutor,
        all_pixels: Callable[[], int],
    ) -> None:
        self.workspace = Workspace(limits)
        self.used_memory = False
        self._socket, self._limits, self._threads = socket, limits, threads
        self._all_pixels = all_pixels
        depth = DepthTool()
        self._tools: dict[str, Tool] = {
            "colorize": ColorizeTool(),
            "cut": CutTool(),
            "depth": depth,
            "refocus": RefocusTool(depth),
        }
        self._jobs: deque[Message] = deque()
        self._request: Message | None = None
        self._newest = 0
        self._newest_complete = 0
        """The newest request that did not come in the middle of a stroke."""
        self._shown: tuple[str, Array | None] = ("", None)
        """The tool and the pixels at full size that the page has: equal strips are not sent."""
        self._wake, self._wake_full = asyncio.Event(), asyncio.Event()
        self._job_done = asyncio.Event()
        self._full_request: Message | None = None
        self._closed = False
        self._computing = 0
        """Number of threads that compute for this page."""

    async def serve(self, greeting: bytes) -> None:
        """Serve the page until it leaves or stays idle for too long."""
        await self._socket.send_bytes(greeting)
        workers = [asyncio.create_task(w()) for w in (self._work, self._work_at_full_size)]
        try:
            while True:
                data = await self._next_message()
                await self._receive(data)
                await self._wait_for_jobs()
        except TimeoutError:
            await self._socket.close(4408, "idle")
        except (WebSocketDisconnect, RuntimeError, KeyError):
            pass  # the page left, or sent text instead of bytes
        finally:
            self._closed = True
            self._newest += 1  # cancels the solve that runs
            for worker in workers:
                worker.cancel()
            for worker in workers:
                with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                    await worker
            self.workspace.close()

    async def _next_message(self) -> bytes:
        """Return the next message; a page is idle if none comes and nothing is computed for it."""
        receive = asyncio.ensure_future(self._socket.receive_bytes())
        try:
            while True:
                done, _ = await asyncio.wait({receive}, timeout=self._limits.idle_seconds)
                if done:
                    return receive.result()
                if not self._jobs and not self._computing:
                    raise TimeoutError
        finally:
            receive.cancel()

    async def _wait_for_jobs(self) -> None:
        """Read on only when few jobs wait: what waits for its turn must not fill the memory."""
        while (
            len(self._jobs) >= _MOST_JOBS
            or sum(len(job.payload) for job in self._jobs) > self._limits.bytes
        ):
            self._job_done.clear()
            await self._job_done.wait()

    async def _receive(self, data: bytes) -> None:
        try:
            message = unpack(data)
            if message.kind == "paint":
                self._paint(message)
            elif message.kind == "picture":
                message.text("tool", TOOLS)
                self._newest = max(self._newest, message.integer("seq"))
                if not message.fields.get("live"):
                    self._newest_complete = self._newest
                self._request = message
            elif message.kind == "ping":
                await self._socket.send_bytes(pack("pong"))
            else:
                self._jobs.append(message)
                if message.kind in ("open", "example"):
                    self._newest += 1
                    self._newest_complete = self._newest
                    self._request = None
        except _EXPECTED as error:
            await self._send_error(error)
        self._wake.set()

    def _paint(self, message: Message) -> None:
        x, y, width, height = (message.integer(n, 0, 10**6) for n in ("x", "y", "width", "height"))
        tool = message.text("tool", TOOLS)
        # A file that is being opened comes first, because the strokes belong to it.
        if any(job.kind in ("open", "example") for job in self._jobs):
            self._jobs.append(message)
            return
        self.workspace.paint(tool, x, y, width, height, message.payload)

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._jobs or self._request is not None:
                if self._jobs:
                    await self._report_errors(self._run_job(self._jobs[0]), self._jobs[0])
                else:
                    request, self._request = self._request, None
                    assert request is not None
                    await self._report_errors(self._make_picture(request), request)

    async def _report_errors(
        self, work: Coroutine[Any, Any, None], request: Message, *, may_be_stale: bool = False
    ) -> None:
        """Do some work; tell the page what is wrong, unless newer work made it stale."""
        try:
            await work
        except Stale:
            pass
        except Exception as error:
            if self._socket.application_state is WebSocketState.DISCONNECTED:
                raise  # the page left
            if not may_be_stale or request.integer("seq") >= self._newest:
                await self._send_error(error, request)

    async def _run_job(self, job: Message) -> None:
        try:
            fields = job.fields
            if job.kind == "paint":
                self._jobs.popleft()
                self._paint(job)
                return
            if job.kind == "open":
                name, data = job.text("name")[:200], bytes(job.payload)
                await self._in_thread(self.workspace.open, name, data, self._others())
                await self._send_opened(job)
            elif job.kind == "example":
                example = await self._in_thread(load_example, job.text("name"))
                opened = (example.title, example.photo, self._others())
                await self._in_thread(self.workspace.open_array, *opened)
                if example.depth is not None:
                    self.workspace.set_depth(example.depth, own=True)
                await self._send_opened(job)
            elif job.kind == "depth":
                await self._in_thread(self._open_depth, bytes(job.payload), job.text("name"))
                await self._socket.send_bytes(pack("depth", seq=job.integer("seq")))
            elif job.kind == "mask":
                data, name = bytes(job.payload), job.text("name")
                await self._in_thread(self._open_mask, data, name)
                await self._socket.send_bytes(pack("mask", seq=job.integer("seq")))
            elif job.kind == "stereo":
                most = job.integer("disparities", 1, 1024)
                await self._in_thread(self._match, bytes(job.payload), job.text("name"), most)
                await self._socket.send_bytes(pack("depth", seq=job.integer("seq")))
            elif job.kind == "forget":
                what = job.text("what", ("depth", "mask"))
                self.workspace.forget(what)
                await self._socket.send_bytes(pack(what, seq=job.integer("seq")))
            elif job.kind == "save":
                tool = self._tools[job.text("tool", TOOLS)]
                arguments = (self.workspace, job.text("what"), fields, self._check(2**53, True))
                file = await self._in_thread(tool.save, *arguments)
                await self._socket.send_bytes(pack("file", file.data, name=file.name))
            else:
                raise MessageError(f"unknown kind {job.kind[:40]!r}.")
        finally:
            if self._jobs and self._jobs[0] is job:
                self._jobs.popleft()
            self._job_done.set()

    def _others(self) -> int:
        """Pixels of the photographs of other pages."""
        self.used_memory = True
        return self._all_pixels() - self.workspace.pixels

    def _open_depth(self, data: bytes, name: str) -> None:
        limit = 16 * self._limits.pixels
        self.workspace.set_depth(io.decode(data, Options(limit), name))

    def _open_mask(self, data: bytes, name: str) -> None:
        self.workspace.set_mask(io.decode(data, Options(16 * self._limits.pixels), name))

    def _match(self, data: bytes, name: str, disparities: int) -> None:
        left = self.workspace.opened().photo
        right = io.decode(data, Options(16 * self._limits.pixels), name)
        right = right[..., :3] if right.ndim == 3 and right.shape[2] == 4 else right
        self.workspace.set_depth(stereo_depth(left, right, disparities))

    async def _make_picture(self, request: Message) -> None:
        """Send the first picture of a request; leave the full size to the other worker."""
        preview = self.workspace.preview
        await self._make(request, preview or self.workspace.opened(), first=True)
        if preview is not None and not request.fields.get("live"):
            self._full_request = request
            self._wake_full.set()

    async def _work_at_full_size(self) -> None:
        """Make the newest picture at full size, beside the previews of newer strokes."""
        while True:
            await self._wake_full.wait()
            self._wake_full.clear()
            request = self._full_request
            if request is None or request.integer("seq") < self._newest:
                continue
            await self._report_errors(
                self._make(request, self.workspace.opened(), first=False),
                request,
                may_be_stale=True,
            )

    async def _make(self, request: Message, view: View, *, first: bool) -> None:
        tool, seq = self._tools[request.text("tool", TOOLS)], request.integer("seq")
        started = time.perf_counter()
        check = self._check(seq, first)
        arguments = (self.workspace, view, request.fields, check)
        picture = await self._in_thread(tool.picture, *arguments)
        check(0, 0.0)
        await self._send_picture(picture, request, view, time.perf_counter() - started)

    async def _send_picture(
        self, picture: Array, request: Message, view: View, seconds: float
    ) -> None:
        height, width, channels = picture.shape
        rows = max(1, _STRIP_BYTES // (channels * width))
        seq, tool, is_full = request.integer("seq"), request.fields["tool"], view.factor == 1
        shown = self._shown[1] if is_full and self._shown[0] == tool else None
        if is_full:
            self._shown = (tool, picture)
        for y in range(0, height, rows):
            last = y + rows >= height
            if seq < self._newest and is_full and y:
                self._shown = ("", None)
                raise Stale
            strip = picture[y : y + rows]
            if shown is not None and np.array_equal(strip, shown[y : y + rows]):
                if not last:
                    continue
                strip = strip[:0]
            await self._socket.send_bytes(
                pack(
                    "picture",
                    _bytes(strip),
                    tool=tool,
                    seq=seq,
                    factor=view.factor,
                    y=y,
                    width=width,
                    height=height,
                    rows=strip.shape[0],
                    channels=channels,
                    last=last,
                    ms=round(1000 * seconds, 1),
                )
            )

    def _check(self, seq: int, first: bool) -> Check:
        """Return the callback that cancels work for a newer request.

        The first picture of a request is cancelled only by a complete one: a person who paints
        without a pause must see progress.
        """
        end = time.monotonic() + self._limits.seconds

        def check(step: int, residual: float) -> None:
            if self._closed or seq < (self._newest_complete if first else self._newest):
                raise Stale
            if time.monotonic() > end:
                raise Refused(f"This took more than {self._limits.seconds:.0f} s and was stopped.")

        return check

    async def _send_opened(self, job: Message) -> None:
        view = self.workspace.opened()
        self._shown = ("", None)
        (height, width), seq = view.shape, job.integer("seq")
        rows = max(1, _STRIP_BYTES // (3 * width))
        for y in range(0, height, rows):
            strip = _bytes(view.display[y : y + rows])
            fields = {"seq": seq, "y": y, "width": width, "height": height}
            await self._socket.send_bytes(pack("photo", strip, **fields))
        await self._socket.send_bytes(
            pack(
                "opened",
                seq=seq,
                name=self.workspace.name,
                width=width,
                height=height,
                depth=self.workspace.depth is not None,
            )
        )

    async def _send_error(self, error: Exception, job: Message | None = None) -> None:
        kind = "hint" if isinstance(error, Refused) else "error"
        if isinstance(error, MemoryError):
            text = "There is not enough memory for this."
        elif isinstance(error, _EXPECTED):
            text = plain_message(error)
        else:
            # A fault of the studio: this page must go on, and whoever started it sees where.
            traceback.print_exception(error)
            text = "The studio made a mistake. The terminal where it was started says more."
        seq = None if job is None else job.fields.get("seq")
        await self._socket.send_bytes(pack(kind, text=text, seq=seq))

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        self._computing += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, function, *arguments)
        finally:
            self._computing -= 1


def _bytes(pixels: Array) -> memoryview:
    """Return the bytes of contiguous pixels, without a copy."""
    return pixels.reshape(-1).data
