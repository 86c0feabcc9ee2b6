"""Start the studio: listen on this machine only, print the address, open the browser."""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from bilateral.studio.app import Studio, guarded
from bilateral.studio.limits import Limits
from bilateral.studio.security import TOKEN_FIELD

HOST = "127.0.0.1"


class PortError(Exception):
    """The port cannot be used. The message is one line."""


class Server:
    """A studio that listens on a port."""

    def __init__(
        self,
        port: int = 0,
        photo: tuple[str, bytes] | None = None,
        limits: Limits | None = None,
    ) -> None:
        limits = limits or Limits()
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        self.studio = Studio(limits, photo)
        guard = guarded(self.studio, self.port)
        self.url = f"http://{HOST}:{self.port}/?{TOKEN_FIELD}={guard.token}"
        config = uvicorn.Config(
            guard,
            log_level="critical",
            access_log=False,
            lifespan="off",
            loop="asyncio",
            ws="websockets-sansio",
            ws_max_size=limits.bytes,
            ws_per_message_deflate=False,
            h11_max_incomplete_event_size=65536,
            limit_concurrency=200,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._server = uvicorn.Server(config)

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until Ctrl-C or `stop`; call `ready` once the page can be opened."""

        async def serve() -> None:
            task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
            while not (self._server.started or task.done()):
                await asyncio.sleep(0.005)
            if self._server.started:
                ready()
            await task

        try:
            asyncio.run(serve())
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End `run` from another thread."""
        self._server.should_exit = True


def open_browser(url: str) -> None:
    """Open a page without waiting for the browser."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise PortError(
            f"--port: {port} cannot be used ({error.strerror}). Leave it out to take a free one."
        ) from None
    return listener
