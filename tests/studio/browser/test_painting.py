"""Painting: the painted pixel is where the cursor was, with mouse, pen and touch."""

from typing import Any

import numpy as np
import pytest

from bilateral import io, tasks
from bilateral.cli.demo.room import room

pytestmark = pytest.mark.browser

PHOTO = room((300, 400))[0]


def press(page: Any, kind: str, *points: tuple[float, float]) -> None:
    """Press at the first point of the window, move along the others, and lift."""
    session = page.page.context.new_cdp_session(page.page)
    if kind == "touch":
        for i, (x, y) in enumerate(points):
            name = "touchMove" if i else "touchStart"
            session.send(
                "Input.dispatchTouchEvent", {"type": name, "touchPoints": [{"x": x, "y": y}]}
            )
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        return
    common = {"button": "left", "buttons": 1, "clickCount": 1, "pointerType": kind, "force": 1.0}
    for i, (x, y) in enumerate([*points, points[-1]]):
        last = i == len(points)
        name = "mouseReleased" if last else "mouseMoved" if i else "mousePressed"
        buttons = {"buttons": 0} if last else {}
        session.send(
            "Input.dispatchMouseEvent", {"type": name, "x": x, "y": y, **common, **buttons}
        )


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("kind", ["mouse", "pen", "touch"])
def test_the_painted_pixel_is_where_the_cursor_was(new_page: Any, kind: str, ratio: int) -> None:
    page = new_page(ratio=ratio, has_touch=True)
    page.open(PHOTO)
    for zoom in (0.5, 1, 2.3, 8):
        page.zoom(zoom, 200.5, 150.5)
        page.get("setSize(1)")
        x, y = page.place(203.5, 148.5)
        press(page, kind, (x, y))
        rows, columns = np.nonzero(page.layer("colorize")[..., 3])
        found = {(int(a), int(b)) for a, b in zip(rows, columns, strict=True)}
        assert found == {(148, 203)}
        if kind == "mouse":
            box = page.get(
                "() => { const b = document.getElementById('cursor').getBoundingClientRect();"
                " return [b.left + b.width / 2, b.top + b.height / 2, b.width]; }"
            )
            page.get("setSize(20)")
            width = page.get("document.getElementById('cursor').getBoundingClientRect().width")
            assert abs(box[0] - x) < 0.02
            assert abs(box[1] - y) < 0.02
            assert abs(width - 20 * zoom) < 0.02
        page.page.keyboard.press("Control+z")
        assert not page.layer("colorize").any()


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("zoom", [2, 8])
def test_the_stroke_is_under_the_cursor_on_screen(new_page: Any, ratio: int, zoom: int) -> None:
    page = new_page(ratio=ratio)
    page.open(PHOTO)
    page.zoom(zoom, 100, 100)
    page.get("setSize(5)")
    page.stroke((90, 100), (110, 100), color="#ff00ff")
    page.page.mouse.move(5, 400)
    page.settle()
    data = page.page.screenshot()
    screen = io.decode(data, io.Options(), "a.png")[..., :3].astype(int)
    x, y = (round(v * ratio) for v in page.place(100.5, 100.5))
    assert np.abs(screen[y, x] - (255, 0, 255)).max() < 3
    # Just outside of the stroke, the photograph shows.
    x, y = (round(v * ratio) for v in page.place(100.5, 104.5))
    assert np.abs(screen[y, x] - (255, 0, 255)).max() > 60


def test_a_light_pen_paints_a_thin_stroke(page: Any) -> None:
    page.open(PHOTO)
    page.get("setSize(40)")
    session = page.page.context.new_cdp_session(page.page)
    x, y = page.place(200, 150)
    widths = []
    for force in (0.1, 1.0):
        common = {"x": x, "y": y, "button": "left", "pointerType": "pen", "clickCount": 1}
        down = {**common, "type": "mousePressed", "buttons": 1, "force": force}
        session.send("Input.dispatchMouseEvent", down)
        session.send("Input.dispatchMouseEvent", {**common, "type": "mouseReleased", "buttons": 0})
        widths.append(np.count_nonzero(page.layer("colorize")[150, :, 3]))
        page.page.keyboard.press("Control+z")
    assert widths[0] < 0.5 * widths[1]
    assert abs(widths[1] - 40) <= 1


def test_two_fingers_move_and_zoom_and_paint_nothing(new_page: Any) -> None:
    page = new_page(has_touch=True)
    page.open(PHOTO)
    session = page.page.context.new_cdp_session(page.page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        places = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    x, y = page.place(200, 150)
    before = page.get("view.zoom")
    touch("touchStart", (x - 50, y))
    touch("touchMove", (x - 48, y))
    touch("touchStart", (x - 48, y), (x + 50, y))
    for i in range(1, 11):
        touch("touchMove", (x - 48 - 5 * i, y), (x + 50 + 5 * i, y))
    touch("touchEnd")
    assert page.get("view.zoom") > 1.5 * before
    assert not page.layer("colorize").any()
    assert page.get("studio.history.done.length") == 0
    touch("touchStart", (x, y))
    touch("touchMove", (x + 20, y))
    touch("touchEnd")
    assert page.layer("colorize").any()


def test_wheel_and_space_move_the_picture_under_the_pointer(page: Any) -> None:
    page.open(PHOTO)
    x, y = page.place(130, 110)
    page.page.mouse.move(x, y)
    for delta in (-300, -300, 200):
        page.page.mouse.wheel(0, delta)
        page.page.wait_for_timeout(50)
        found = page.place(130, 110)
        assert abs(found[0] - x) + abs(found[1] - y) < 0.1
    page.page.locator("#stage").focus()
    page.page.keyboard.down(" ")
    page.page.mouse.down()
    page.page.mouse.move(x + 60, y - 30, steps=4)
    page.page.mouse.up()
    page.page.keyboard.up(" ")
    found = page.place(130, 110)
    assert abs(found[0] - x - 60) + abs(found[1] - y + 30) < 0.1
    assert not page.layer("colorize").any()


def test_the_canvas_is_exactly_the_task_of_the_saved_strokes(page: Any) -> None:
    photo = room((700, 900))[0]  # large enough for a preview
    page.open(photo)
    page.stroke((100, 100), (400, 160), color="#b03020")
    page.get("setSize(1)")
    page.stroke((500, 500), (700, 600), color="#2060a0")
    page.get("setSize(30)")
    page.stroke((100, 600), (300, 650), color="#508030")
    page.settle()
    saved = io.decode(page.download("Strokes"), io.Options(), "a.png")
    np.testing.assert_array_equal(saved, page.layer("colorize"))
    expected = tasks.colorize(photo, saved)
    np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)
    picture = io.decode(page.download("Save picture"), io.Options(), "a.png")
    np.testing.assert_array_equal(picture, expected)


def test_undo_to_the_start_and_redo_to_the_end(page: Any) -> None:
    page.open(PHOTO)
    empty = page.picture("colorize")
    layers = [page.layer("colorize")]
    for i, color in enumerate(("#b03020", "#2060a0", "#508030")):
        page.stroke((50 + 60 * i, 50), (80 + 60 * i, 200), color=color)
        layers.append(page.layer("colorize"))
    page.page.keyboard.press("e")
    page.stroke((40, 120), (300, 120))
    layers.append(page.layer("colorize"))
    page.page.get_by_role("button", name="Clear").click()
    layers.append(page.layer("colorize"))
    assert not layers[-1].any()
    for expected in layers[-2::-1]:
        page.page.keyboard.press("Control+z")
        np.testing.assert_array_equal(page.layer("colorize"), expected)
    assert page.page.locator("#undo").is_disabled()
    page.settle()
    np.testing.assert_array_equal(page.picture("colorize"), empty)
    for expected in layers[1:]:
        page.page.keyboard.press("Control+Shift+z")
        np.testing.assert_array_equal(page.layer("colorize"), expected)
    assert page.page.locator("#redo").is_disabled()


def test_strokes_survive_a_change_of_tool_and_zoom(page: Any) -> None:
    page.open(PHOTO)
    page.stroke((50, 50), (200, 80), color="#b03020")
    before = page.layer("colorize")
    page.page.keyboard.press("2")
    page.stroke((100, 100), (150, 150))
    page.page.mouse.wheel(0, -400)
    page.page.keyboard.press("1")
    page.page.keyboard.press("0")
    np.testing.assert_array_equal(page.layer("colorize"), before)
    assert page.layer("cut").any()
    page.settle()
    np.testing.assert_array_equal(page.picture("colorize")[..., :3], tasks.colorize(PHOTO, before))


def test_a_change_of_tool_ends_the_stroke(page: Any) -> None:
    page.open(PHOTO)
    mouse = page.page.mouse
    mouse.move(*page.place(50, 50))
    mouse.down()
    mouse.move(*page.place(100, 60), steps=4)
    page.page.keyboard.press("2")
    mouse.move(*page.place(200, 60), steps=4)
    mouse.up()
    assert page.layer("colorize").any()
    assert not page.layer("cut").any()
    page.page.keyboard.press("Control+z")
    assert not page.layer("colorize").any()


def test_a_colour_can_be_picked(page: Any) -> None:
    photo = np.zeros((60, 80, 3), np.uint8)
    photo[:, 40:] = (10, 120, 200)
    page.open(photo)
    page.page.keyboard.down("Alt")
    page.page.mouse.click(*page.place(60, 30))
    page.page.keyboard.up("Alt")
    # The picture shows the gray photograph as long as there is no stroke.
    gray = round(0.299 * 10 + 0.587 * 120 + 0.114 * 200)
    value = page.get("document.getElementById('color').value")
    assert value == "#" + 3 * f"{gray:02x}"
    assert not page.layer("colorize").any()


def test_keys(page: Any) -> None:
    page.open(PHOTO)
    keyboard = page.page.keyboard
    page.page.locator("#stage").focus()
    size = page.get("brush.size")
    keyboard.press("]")
    assert page.get("brush.size") > size
    for _ in range(40):
        keyboard.press("[")
    assert page.get("brush.size") == 1
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    rows, columns = np.nonzero(page.layer("colorize")[..., 3])
    assert list(zip(rows, columns, strict=True)) == [(150, 201)]
    keyboard.press("s")
    assert page.get("view.showsStrokes") is False
    keyboard.press("c")
    assert page.page.locator("#compare-handle").is_visible()
    page.page.locator("#compare-handle").focus()
    keyboard.press("ArrowRight")
    assert page.page.locator("#compare-handle").get_attribute("aria-valuenow") == "55"
