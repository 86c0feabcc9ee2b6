"""The window: pixel ratios, the cursor's ring, focus after clicks, an idle connection."""

from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the studio needs uvicorn")
pytest.importorskip("playwright", reason="browser tests need playwright")

from bilateral.cli.demo.room import room
from bilateral.studio.limits import Limits
from support.browser import StudioPage
from support.studio import running

pytestmark = pytest.mark.browser

PHOTO = room((150, 200))[0]


def test_a_change_of_the_pixel_ratio_alone_resizes_the_canvases(page: Any) -> None:
    page.open(PHOTO)
    session = page.page.context.new_cdp_session(page.page)
    css = page.get("view.stage.getBoundingClientRect().width")
    for ratio in (2, 1.5, 1):
        metrics = {"width": 1280, "height": 800, "deviceScaleFactor": ratio, "mobile": False}
        session.send("Emulation.setDeviceMetricsOverride", metrics)
        # Real windows tell it by an event, emulated ones do not: painting sees it in any case.
        page.stroke((50, 75), (60, 75))
        page.wait(f"view.ratio === {ratio} && view.base.width === {round(css * ratio)}")
        assert page.get("view.strokes.width") == round(css * ratio)
        assert page.get("view.stage.getBoundingClientRect().width") == css


@pytest.mark.parametrize("size", [1, 1.5, 2, 3])
def test_the_ring_of_a_small_brush_is_around_what_it_paints(page: Any, size: float) -> None:
    page.open(PHOTO)
    page.zoom(16, 100, 75)
    page.get(f"setSize({size})")
    page.page.mouse.move(*page.place(100.8, 75.2))
    ring = page.get(
        "() => { const b = document.getElementById('cursor').getBoundingClientRect();"
        " const s = view.stage.getBoundingClientRect();"
        " return [b.left - s.left - view.x, b.top - s.top - view.y, b.width].map(v => v / 16); }"
    )
    expected = [100, 75, 1] if size < 2 else [100.8 - size / 2, 75.2 - size / 2, size]
    assert ring == pytest.approx(expected, abs=0.01)
    page.page.mouse.down()
    page.page.mouse.up()
    painted = page.layer("colorize")[..., 3].nonzero()
    if size < 2:
        assert [v.tolist() for v in painted] == [[75], [100]]
    # The middle of each painted pixel is inside the ring.
    for row, column in zip(*painted, strict=True):
        apart = (column + 0.5 - ring[0] - ring[2] / 2, row + 0.5 - ring[1] - ring[2] / 2)
        assert apart[0] ** 2 + apart[1] ** 2 <= (ring[2] / 2) ** 2 + 0.01


def test_keys_work_after_a_click_on_a_button_or_a_box(page: Any) -> None:
    page.open(PHOTO)
    page.stroke((20, 50), (60, 50))
    page.page.locator("#show-strokes").click()
    page.page.keyboard.press("e")
    assert page.get("brush.erases")
    page.page.get_by_role("button", name="Brush", exact=True).click()
    before = page.get("view.x")
    x, y = page.place(100, 75)
    page.page.mouse.move(x, y)
    page.page.keyboard.down(" ")
    page.page.mouse.down()
    page.page.mouse.move(x + 40, y)
    page.page.mouse.up()
    page.page.keyboard.up(" ")
    assert page.get("view.x") == before + 40
    assert page.get("studio.history.done.length") == 1


def test_alt_and_click_beside_the_picture_pick_nothing(page: Any) -> None:
    page.open(PHOTO)
    page.get("document.getElementById('color').value = '#123456'")
    page.page.keyboard.down("Alt")
    for place in ((-3, 50), (50, -3), (203, 50), (50, 153)):
        page.page.mouse.click(*page.place(*place))
        assert page.get("document.getElementById('color').value") == "#123456"
    page.page.keyboard.up("Alt")


@pytest.mark.parametrize("sign", ["key", "press", "file"])
def test_an_idle_page_connects_again_with_any_sign_of_life(browser: Any, sign: str) -> None:
    with running(limits=Limits(idle_seconds=1.5)) as server:
        context = browser.new_context()
        page = StudioPage(context, server)
        page.wait("studio.link.rests")
        assert page.get("document.getElementById('link').textContent") == "resting"
        assert not server.studio.connections
        if sign == "key":
            page.page.keyboard.press("Tab")
        elif sign == "press":
            page.get("document.body.dispatchEvent(new PointerEvent('pointerdown'))")
        else:
            page.get("studio.open({ kind: 'example', name: 'room' })")
        page.wait("studio.link.up")
        if sign == "file":
            page.wait("studio.original")
        context.close()
