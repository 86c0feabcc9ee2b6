"""Pictures of each tool for the documentation, compared with the stored ones.

``make studio-pictures`` writes them anew, into docs/images/.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilateral import io

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parents[3] / "docs" / "images"
UPDATE = "STUDIO_PICTURES" in os.environ
BLOCK = 16
"""Blocks of pixels whose means are compared: fonts and their edges differ between machines."""


def colorize(page: Any) -> None:
    open_example(page, "Gray still life")
    for color, *points in (
        ("#e8901a", (120, 300), (200, 420), (260, 460)),
        ("#c0302c", (520, 420), (590, 500)),
        ("#a9bf4a", (700, 220), (790, 300), (800, 400)),
        ("#6b3f77", (420, 250), (490, 290)),
        ("#5f8794", (60, 60), (500, 90), (900, 60)),
        ("#8a5a3a", (60, 620), (400, 625), (900, 620)),
        ("#8a5a3a", (350, 520), (420, 480)),
        ("#8a5a3a", (600, 290), (640, 300)),
        ("#8a5a3a", (790, 540), (900, 500)),
        ("#5f8794", (230, 180), (290, 230)),
        ("#d97c66", (60, 210), (40, 240)),
    ):
        page.stroke(*points, color=color)


def cut(page: Any) -> None:
    open_example(page, "Still life")
    page.page.keyboard.press("2")
    page.stroke((90, 290), (200, 420), (280, 300))
    page.stroke((500, 420), (590, 560))
    page.stroke((500, 560), (670, 450))
    page.page.keyboard.press("x")
    page.stroke((60, 60), (500, 90), (900, 60))
    page.stroke((60, 622), (400, 628), (900, 622))
    page.stroke((370, 270), (480, 240), (530, 290))
    page.stroke((740, 380), (800, 200), (880, 330))
    page.stroke((50, 200), (110, 190))


def depth(page: Any) -> None:
    open_example(page, "Still life")
    page.page.keyboard.press("3")


def refocus(page: Any) -> None:
    open_example(page, "Still life")
    page.page.keyboard.press("4")
    page.settle()
    page.page.mouse.click(*page.place(610, 500))


def open_example(page: Any, title: str) -> None:
    page.page.get_by_role("button", name=title, exact=True).first.click()
    page.wait("studio.original")
    page.get("document.getElementById('timing').hidden = true")


@pytest.mark.parametrize(
    ("name", "draw", "scheme", "size"),
    [
        ("colorize", colorize, "dark", (1280, 800)),
        ("cut", cut, "light", (1280, 800)),
        ("depth", depth, "dark", (1280, 800)),
        ("refocus", refocus, "dark", (1280, 800)),
        ("phone", colorize, "light", (390, 844)),
    ],
)
def test_pictures(new_page: Any, name: str, draw: Any, scheme: str, size: tuple[int, int]) -> None:
    page = new_page(scheme=scheme, viewport={"width": size[0], "height": size[1]})
    draw(page)
    page.page.mouse.move(1, 1)
    page.settle()
    page.page.wait_for_timeout(300)
    data = page.page.screenshot(type="jpeg", quality=85)
    path = FOLDER / f"studio-{name}.jpg"
    if UPDATE:
        path.write_bytes(data)
    assert 10_000 < path.stat().st_size < 250_000
    found, stored = (block_means(io.decode(d, io.Options())) for d in (data, path.read_bytes()))
    difference = np.abs(found - stored)
    assert difference.mean() < 3
    assert (difference > 32).mean() < 0.01


def block_means(picture: Any) -> Any:
    height, width = (n // BLOCK * BLOCK for n in picture.shape[:2])
    blocks = picture[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK, 3)
    return blocks.mean(axis=(1, 3))
