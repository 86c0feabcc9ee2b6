"""Pages: two at a time, a restarted server, projects, the other tools, accessibility."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the studio needs uvicorn")
pytest.importorskip("playwright", reason="browser tests need playwright")

from bilateral import io, tasks
from bilateral.cli.demo.room import room
from support.browser import StudioPage
from support.studio import running

pytestmark = pytest.mark.browser

PHOTO, DISPARITY = room((300, 400))
AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"


def test_two_tabs_do_not_disturb_each_other(new_page: Any) -> None:
    one, two = new_page(), new_page()
    one.open(PHOTO)
    two.open(PHOTO[:, ::-1])
    one.stroke((50, 50), (200, 80), color="#b03020")
    two.stroke((150, 150), (200, 280), color="#2060a0")
    for page, photo in ((one, PHOTO), (two, PHOTO[:, ::-1])):
        page.settle()
        expected = tasks.colorize(photo, page.layer("colorize"))
        np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)


def test_a_restarted_server_loses_no_stroke(browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    with running() as server:
        port = server.port
        page = StudioPage(context, server)
        page.open(PHOTO)
        page.stroke((50, 50), (200, 80), color="#b03020")
        page.settle()
    page.wait("!studio.link.up")
    # Painting goes on without a server.
    page.stroke((150, 200), (300, 220), color="#2060a0")
    before = page.layer("colorize")
    with running(port=port) as server:
        StudioPage(context, server)  # the new start opens a page with the new token
        page.wait("studio.link.up")
        page.settle()
        np.testing.assert_array_equal(page.layer("colorize"), before)
        expected = tasks.colorize(PHOTO, before)
        np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)
        page.stroke((50, 250), (60, 280), color="#40a040")
        page.settle()
        expected = tasks.colorize(PHOTO, page.layer("colorize"))
        np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)
        context.close()


def test_a_project_opens_again(page: Any, new_page: Any) -> None:
    page.open(PHOTO)
    page.stroke((50, 50), (200, 80), color="#b03020")
    page.page.keyboard.press("2")
    page.stroke((100, 100), (150, 150))
    page.page.keyboard.press("x")
    page.stroke((300, 20), (350, 250))
    page.settle()
    data = page.download("Project")
    other = new_page()
    file = {"name": "a.studio", "mimeType": "application/octet-stream", "buffer": data}
    other.page.set_input_files("#file", file)
    other.wait("studio.tool === 'cut' && studio.pictures.cut?.full?.seq === studio.seq")
    for tool in ("colorize", "cut"):
        np.testing.assert_array_equal(other.layer(tool), page.layer(tool))
    np.testing.assert_array_equal(other.picture("cut"), page.picture("cut"))


def test_cut_out(page: Any) -> None:
    page.open(PHOTO)
    page.page.get_by_role("button", name="Cut out", exact=True).click()
    page.stroke((100, 100), (150, 150))
    page.wait("document.getElementById('hint').textContent.includes('does not belong')")
    page.page.get_by_role("button", name="Not this", exact=True).click()
    page.stroke((300, 20), (350, 250))
    page.settle()
    matte = tasks.cut_out(PHOTO, page.layer("cut"))
    saved = io.decode(page.download("Save cut-out"), io.Options(), "a.png")
    np.testing.assert_array_equal(saved[..., 3], np.rint(255 * matte))
    np.testing.assert_array_equal(saved[..., :3], PHOTO)
    mask = io.decode(page.download("Mask"), io.Options(), "a.png")
    np.testing.assert_array_equal(mask, np.where(matte > 0.5, 255, 0))


def test_a_rough_mask_survives_undo_and_a_project(page: Any, new_page: Any) -> None:
    page.open(PHOTO)
    page.page.keyboard.press("2")
    rough = np.median(DISPARITY) < DISPARITY
    data = io.encode(np.where(rough, 255, 0).astype(np.uint8), "m.png")
    file = {"name": "m.png", "mimeType": "image/png", "buffer": data}
    page.page.set_input_files("#mask-file", file)
    page.wait("studio.options.mask")
    page.settle()
    expected = np.rint(255 * tasks.cut_out(PHOTO, mask=rough))
    np.testing.assert_array_equal(page.picture("cut")[..., 3], expected)
    page.page.keyboard.press("Control+z")
    page.settle()
    assert (page.picture("cut")[..., 3] == 255).all()
    page.page.keyboard.press("Control+Shift+z")
    page.settle()
    project = page.download("Project")
    other = new_page()
    file = {"name": "a.studio", "mimeType": "application/octet-stream", "buffer": project}
    other.page.set_input_files("#file", file)
    other.wait("studio.tool === 'cut' && studio.pictures.cut?.full?.seq === studio.seq")
    other.settle()
    np.testing.assert_array_equal(other.picture("cut")[..., 3], expected)


def test_depth_and_refocus(page: Any) -> None:
    page.open(PHOTO)
    page.page.keyboard.press("3")
    page.wait("document.getElementById('hint').textContent.includes('no depth map')")
    depth = io.encode((120 / DISPARITY).astype(np.float32), "d.pfm")
    file = {"name": "d.pfm", "mimeType": "image/pfm", "buffer": depth}
    page.page.set_input_files("#depth-file", file)
    page.wait("studio.hasDepth && studio.pictures.depth?.full")
    page.settle()
    colors = page.picture("depth")
    page.page.get_by_role("button", name="Relief").click()
    page.settle()
    assert np.abs(page.picture("depth").astype(int) - colors).max() > 50
    page.page.keyboard.press("Control+z")
    page.settle()
    np.testing.assert_array_equal(page.picture("depth"), colors)
    page.page.get_by_role("button", name="Wrong").click()
    page.stroke((50, 50), (80, 80))
    page.settle()
    page.page.keyboard.press("4")
    page.settle()
    page.page.mouse.click(*page.place(60, 40))
    page.settle()
    far = page.picture("refocus")
    page.page.mouse.click(*page.place(250, 280))
    page.settle()
    assert np.abs(page.picture("refocus").astype(int) - far).mean() > 1
    page.page.keyboard.press("Control+z")
    page.settle()
    np.testing.assert_array_equal(page.picture("refocus"), far)


def test_the_first_click_needs_no_file(page: Any) -> None:
    page.page.get_by_role("button", name="Room").first.click()
    page.wait("studio.original")
    page.page.keyboard.press("4")
    page.settle()
    assert page.get("studio.hasDepth")


def test_a_dropped_and_a_pasted_picture_open(page: Any) -> None:
    script = """async ([kind, name]) => {
      const canvas = new OffscreenCanvas(40, 30);
      canvas.getContext('2d').fillRect(0, 0, 20, 30);
      const file = new File([await canvas.convertToBlob()], name, { type: 'image/png' });
      const data = new DataTransfer();
      data.items.add(file);
      window.dispatchEvent(kind === 'drop' ? new DragEvent('drop', { dataTransfer: data })
        : new ClipboardEvent('paste', { clipboardData: data })); }"""
    for kind in ("drop", "paste"):
        page.get(script, [kind, f"{kind}.png"])
        page.wait(f"studio.name === '{kind}.png' && studio.width === 40")


def test_a_file_that_is_no_picture_has_a_clear_message(page: Any) -> None:
    file = {"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"}
    page.page.set_input_files("#file", file)
    page.wait("document.getElementById('hint').textContent.includes('is no PNG file')")


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_no_serious_accessibility_problem(new_page: Any, scheme: str, size: Any) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core: npm install")
    page = new_page(scheme=scheme, viewport={"width": size[0], "height": size[1]})
    page.open(PHOTO)
    for tool in ("1", "2", "3", "4"):
        page.page.keyboard.press(tool)
        page.get(AXE.read_text() + "; 0")
        found = page.get("axe.run().then(result => result.violations)")
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        nodes = [(v["id"], [n["html"] for n in v["nodes"]]) for v in serious]
        assert nodes == []


def test_everything_can_be_reached_by_the_keyboard(page: Any) -> None:
    page.open(PHOTO)
    reached = set()
    for _ in range(60):
        page.page.keyboard.press("Tab")
        name = page.get(
            "document.activeElement.id || document.activeElement.textContent.trim().slice(0, 20)"
        )
        reached.add(name)
    assert {"stage", "open", "theme", "color", "size", "eraser", "clear", "Cut out"} <= reached
