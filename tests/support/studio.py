"""A studio in a thread, and a page without a browser."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from websockets.sync.client import ClientConnection, connect

from bilateral import io
from bilateral.studio.limits import Limits
from bilateral.studio.messages import Message, pack, unpack
from bilateral.studio.server import Server


@contextmanager
def running(**arguments: Any) -> Iterator[Server]:
    """Run a studio on a free port."""
    server = Server(**arguments)
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(20)
        yield server
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def cookie_of(server: Server) -> str:
    """The cookie that a browser gets with the first address."""
    answer = httpx.get(server.url)
    assert answer.status_code == 303
    return answer.headers["set-cookie"].partition(";")[0]


class Page:
    """A page without a browser: sends and receives messages."""

    def __init__(self, server: Server, **options: Any) -> None:
        host = urlsplit(server.url).netloc
        headers = {"Cookie": cookie_of(server)}
        self.seq = 0
        self.shown: dict[str, Any] = {}
        self.photo = np.zeros((0, 0, 3), np.uint8)
        self._stack = ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(
            connect(
                f"ws://{host}/socket",
                origin=f"http://{host}",
                additional_headers=headers,
                max_size=None,
                compression=None,
                **options,
            )
        )
        self.hello = self.receive("hello")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def send(self, kind: str, payload: bytes = b"", **fields: Any) -> int:
        self.seq += 1
        self.socket.send(pack(kind, payload, **{"seq": self.seq, **fields}))
        return self.seq

    def receive(self, *kinds: str, seconds: float = 60) -> Message:
        """Return the next message of one of these kinds."""
        while True:
            data = self.socket.recv(timeout=seconds)
            assert isinstance(data, bytes)
            message = unpack(data)
            if message.kind == "picture" and message.fields["factor"] == 1:
                self._show(message)
            if message.kind == "photo":
                self._show_photo(message)
            if message.kind in kinds:
                return message

    def open(self, photo: Any, name: str = "photo.png") -> Message:
        self.send("open", io.encode(photo, name), name=name)
        return self.receive("opened", "error", "hint")

    def paint(self, tool: str, layer: Any, x: int = 0, y: int = 0) -> None:
        height, width = layer.shape[:2]
        pixels = np.ascontiguousarray(layer).tobytes()
        self.send("paint", pixels, tool=tool, x=x, y=y, width=width, height=height)

    def picture(self, tool: str, **fields: Any) -> Any:
        """Ask for a picture; return it at full size."""
        seq = self.send("picture", tool=tool, **fields)
        return self.full_picture(seq)

    def full_picture(self, seq: int) -> Any:
        """Return the picture of a request at full size, or the message that came instead."""
        while True:
            message = self.receive("picture", "error", "hint")
            if message.kind != "picture":
                return message
            fields = message.fields
            if fields["factor"] == 1 and fields["seq"] == seq and fields["last"]:
                return self.shown[fields["tool"]].copy()

    def _show_photo(self, message: Message) -> None:
        """Keep a strip of the photograph that is being opened."""
        y, width, height = (message.fields[name] for name in ("y", "width", "height"))
        if y == 0:
            self.photo = np.zeros((height, width, 3), np.uint8)
        strip = np.frombuffer(message.payload, np.uint8).reshape(-1, width, 3)
        self.photo[y : y + len(strip)] = strip

    def _show(self, message: Message) -> None:
        """Keep the newest pixels of each tool: strips that did not change are not sent again."""
        names = ("tool", "width", "height", "rows", "y", "channels")
        tool, width, height, rows, y, channels = (message.fields[name] for name in names)
        if self.shown.get(tool, np.zeros(0)).shape != (height, width, 4):
            self.shown[tool] = np.zeros((height, width, 4), np.uint8)
        strip = np.frombuffer(message.payload, np.uint8).reshape(rows, width, channels)
        self.shown[tool][y : y + rows, :, :channels] = strip
        if channels == 3:
            self.shown[tool][y : y + rows, :, 3] = 255


__all__ = ["Limits", "Page", "cookie_of", "running"]
