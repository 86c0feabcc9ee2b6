"""The studio in a real browser: Chromium driven by Playwright."""

import base64
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from bilateral import io
from bilateral.studio.server import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium; skip where there is none."""
    driver = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests need Chromium: apt-get install chromium")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class StudioPage:
    """A page of the studio, driven like a person does."""

    def __init__(self, context: Any, server: Server) -> None:
        self.page = context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(server.url)
        self.wait("studio.link.up")

    def get(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Wait for a condition in the page. Its security policy forbids Playwright's own way."""
        end = time.monotonic() + seconds
        while not self.get(f"!!({condition})"):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(10)

    def open(self, photo: Any, name: str = "photo.png") -> None:
        seq = self.get("studio.openedSeq ?? 0")
        files = {"name": name, "mimeType": "image/png", "buffer": io.encode(photo, name)}
        self.page.set_input_files("#file", files)
        self.wait(f"studio.original && studio.openedSeq > {seq}")
        self.settle()

    def settle(self) -> None:
        """Wait until the full picture of the newest request is on the canvas."""
        tool = self.get("studio.tool")
        self.wait(
            f"!studio.timer && studio.pictures.{tool}?.full?.seq === studio.seq && !view.scheduled"
        )

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the place in the window of a place in the picture."""
        found = self.get(
            "([x, y]) => { const box = document.getElementById('stage').getBoundingClientRect();"
            " return [box.left + view.x + x * view.zoom, box.top + view.y + y * view.zoom]; }",
            [x, y],
        )
        return found[0], found[1]

    def stroke(self, *points: tuple[float, float], color: str | None = None) -> None:
        """Paint with the mouse along points of the picture."""
        if color is not None:
            self.get("color => { document.getElementById('color').value = color; }", color)
        mouse = self.page.mouse
        mouse.move(*self.place(*points[0]))
        mouse.down()
        for point in points[1:]:
            mouse.move(*self.place(*point), steps=6)
        mouse.up()

    def zoom(self, zoom: float, x: float, y: float) -> None:
        """Zoom, with a place of the picture at a fraction of a pixel near the middle."""
        self.get(
            "([zoom, x, y]) => { const box = view.stage.getBoundingClientRect(); view.zoom = zoom;"
            " view.x = box.width / 2 - x * zoom + 0.37; view.y = box.height / 2 - y * zoom + 0.21;"
            " view.fitted = false; view.moved(); }",
            [zoom, x, y],
        )

    def layer(self, tool: str) -> Any:
        """Return the layer of strokes (H, W, 4) of the page."""
        return self._pixels(f"studio.layers.{tool}.pixels")

    def picture(self, tool: str) -> Any:
        """Return the result on the page's canvas (H, W, 4)."""
        canvas = f"studio.pictures.{tool}.full.canvas"
        size = f"{canvas}.width, {canvas}.height"
        return self._pixels(f"{canvas}.getContext('2d').getImageData(0, 0, {size}).data")

    def _pixels(self, array: str) -> Any:
        text = self.get(
            f"() => {{ const a = {array}; const b = new Uint8Array(a.buffer); let s = '';"
            " for (let i = 0; i < b.length; i += 32768)"
            " s += String.fromCharCode(...b.subarray(i, i + 32768)); return btoa(s); }"
        )
        shape = self.get("[studio.height, studio.width, 4]")
        return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape)

    def download(self, label: str) -> bytes:
        """Press a button of the panel and return the file it saves."""
        with self.page.expect_download() as info:
            self.page.get_by_role("button", name=label, exact=True).click()
        with open(info.value.path(), "rb") as file:
            return file.read()
