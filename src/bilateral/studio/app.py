"""The web application: the page, its files, and one WebSocket per page."""

from __future__ import annotations

import asyncio
import mimetypes
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

import bilateral
from bilateral.studio import memory
from bilateral.studio.connection import Connection
from bilateral.studio.display import depth_palette
from bilateral.studio.examples import EXAMPLES
from bilateral.studio.limits import Limits
from bilateral.studio.messages import pack
from bilateral.studio.security import Guard

_GIVE_BACK_AFTER = (0.1, 1.0)
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml"}


class Studio:
    """The application and the pages that are open."""

    def __init__(self, limits: Limits, photo: tuple[str, bytes] | None = None) -> None:
        self.limits = limits
        self.connections: set[Connection] = set()
        self._photo = photo
        # Every page has two threads, so that neither another page nor its own full size blocks it.
        self._threads = ThreadPoolExecutor(2 * limits.pages, "studio")
        self._files = _static_files()

    def application(self) -> Starlette:
        """Return the application, without its guard."""
        routes: list[Any] = [
            Route("/photo", self._send_photo),
            Route("/{name}", self._send_file),
            Route("/", self._send_file),
            WebSocketRoute("/socket", self._connect),
        ]
        return Starlette(routes=routes)

    async def _send_file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            return PlainTextResponse("The studio has no such page.", 404)
        content, kind = self._files[name]
        return Response(content, media_type=kind)

    async def _send_photo(self, request: Request) -> Response:
        """Send the photograph that was named on the command line."""
        if self._photo is None:
            return PlainTextResponse("The studio was started without a photograph.", 404)
        return Response(self._photo[1], media_type="application/octet-stream")

    async def _connect(self, socket: WebSocket) -> None:
        await socket.accept()
        if len(self.connections) >= self.limits.pages:
            text = (
                f"The studio serves up to {self.limits.pages} pages at a time. "
                f"Close another one, then load this page again."
            )
            await socket.send_bytes(pack("full", text=text))
            await socket.close(4429)
            return
        connection = Connection(socket, self.limits, self._threads, self._all_pixels)
        self.connections.add(connection)
        try:
            await connection.serve(self._greeting())
        finally:
            self.connections.discard(connection)
            if connection.used_memory:
                del connection
                # A thread may still compute for the page that left.
                for seconds in _GIVE_BACK_AFTER:
                    asyncio.get_running_loop().call_later(seconds, memory.give_back)

    def _all_pixels(self) -> int:
        return sum(connection.workspace.pixels for connection in self.connections)

    def _greeting(self) -> bytes:
        return pack(
            "hello",
            version=bilateral.__version__,
            photo=None if self._photo is None else self._photo[0],
            examples=[{"name": e.name, "title": e.title} for e in EXAMPLES],
            palette=depth_palette().reshape(-1).tolist(),
            limits={"bytes": self.limits.bytes, "pixels": self.limits.pixels},
        )


def guarded(studio: Studio, port: int, token: str | None = None) -> Guard:
    """Return the application behind its guard."""
    return Guard(studio.application(), port, token)


def _static_files() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page once: later requests never touch the file system."""
    files = {}
    for entry in resources.files("bilateral.studio").joinpath("static").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        kind = _TYPES.get(suffix) or mimetypes.guess_type(entry.name)[0] or "text/plain"
        files[entry.name] = (entry.read_bytes(), kind)
    return files
