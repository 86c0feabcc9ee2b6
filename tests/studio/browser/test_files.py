"""Files: what a person opens can be undone, and a bad file changes nothing."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the studio needs uvicorn")
pytest.importorskip("playwright", reason="browser tests need playwright")

from bilateral import io, tasks
from bilateral.cli.demo.room import room
from bilateral.studio.limits import Limits
from support.browser import StudioPage
from support.studio import running

pytestmark = pytest.mark.browser

PHOTO, DISPARITY = room((150, 200))
DEPTH = (120 / DISPARITY).astype(np.float32)


def load(page: Any, field: str, name: str, data: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.page.set_input_files(field, file)


def load_depth(page: Any, name: str, depth: Any) -> None:
    load(page, "#depth-file", name, io.encode(depth, name))
    page.wait(f"studio.depthFile?.name === '{name}'")
    page.settle()


def hint(page: Any, text: str) -> None:
    page.wait(f"document.getElementById('hint').textContent.includes('{text}')")


def test_another_photograph_is_a_step_of_undo(page: Any) -> None:
    page.open(PHOTO, "one.png")
    page.stroke((50, 50), (100, 80), color="#b03020")
    page.settle()
    layer, picture = page.layer("colorize"), page.picture("colorize")
    page.open(PHOTO[:, :120], "two.png")
    page.stroke((20, 50), (60, 50), color="#2060a0")
    page.settle()
    second = page.layer("colorize")
    for _ in range(2):
        page.page.keyboard.press("Control+z")
    assert page.get("[studio.name, studio.width]") == ["one.png", 200]
    np.testing.assert_array_equal(page.layer("colorize"), layer)
    page.settle()
    np.testing.assert_array_equal(page.picture("colorize"), picture)
    # The strokes before are steps, too.
    page.page.keyboard.press("Control+z")
    assert not page.layer("colorize").any()
    assert page.page.locator("#undo").is_disabled()
    for _ in range(3):
        page.page.keyboard.press("Control+Shift+z")
    assert page.get("studio.width") == 120
    np.testing.assert_array_equal(page.layer("colorize"), second)
    page.settle()
    expected = tasks.colorize(PHOTO[:, :120], second)
    np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)


def test_a_file_that_is_no_photograph_changes_nothing(page: Any) -> None:
    page.open(PHOTO, "one.png")
    page.page.keyboard.press("3")
    load_depth(page, "d.pfm", DEPTH)
    page.page.keyboard.press("1")
    page.stroke((50, 50), (100, 80), color="#b03020")
    before = page.layer("colorize")
    load(page, "#file", "bad.png", b"no picture")
    hint(page, "is no PNG file")
    page.stroke((50, 100), (100, 110), color="#2060a0")
    page.settle()
    assert page.get("[studio.photo.name, studio.depthFile.name]") == ["one.png", "d.pfm"]
    assert (page.layer("colorize") != before).any()
    expected = tasks.colorize(PHOTO, page.layer("colorize"))
    np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)


def test_a_depth_map_is_a_step_of_undo(page: Any) -> None:
    page.open(PHOTO)
    page.page.keyboard.press("3")
    load_depth(page, "one.pfm", DEPTH)
    first = page.picture("depth")
    load_depth(page, "two.pfm", DEPTH[:, ::-1].copy())
    assert (page.picture("depth") != first).any()
    load(page, "#depth-file", "bad.pfm", io.encode(DEPTH[:50], "bad.pfm"))
    hint(page, "The depth map has 200 x 50 pixels")
    page.page.keyboard.press("Control+z")
    page.wait("studio.depthFile.name === 'one.pfm'")
    page.settle()
    np.testing.assert_array_equal(page.picture("depth"), first)
    page.page.keyboard.press("Control+z")
    hint(page, "There is no depth map")
    page.page.keyboard.press("Control+Shift+z")
    page.wait("studio.depthFile?.name === 'one.pfm'")
    page.settle()
    np.testing.assert_array_equal(page.picture("depth"), first)


def test_undo_brings_the_depth_map_of_an_example_back(page: Any) -> None:
    page.page.get_by_role("button", name="Room").first.click()
    page.wait("studio.original")
    page.page.keyboard.press("3")
    page.settle()
    first = page.picture("depth")
    height, width = page.get("[studio.height, studio.width]")
    slope = np.tile(np.linspace(1, 2, width, dtype=np.float32), (height, 1))
    load_depth(page, "slope.pfm", slope)
    assert (page.picture("depth") != first).any()
    page.page.keyboard.press("Control+z")
    page.wait("!studio.depthFile")
    page.settle()
    np.testing.assert_array_equal(page.picture("depth"), first)


def test_a_stereo_pair_is_one_step_of_undo(page: Any) -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(0, 256, (60, 120, 3), np.uint8)
    page.open(left)
    page.page.keyboard.press("3")
    load(page, "#right-file", "right.png", io.encode(np.roll(left, -6, axis=1), "right.png"))
    page.wait("studio.depthFile?.kind === 'stereo'")
    page.settle()
    assert page.get("document.getElementById('values').value") == "disparity"
    page.page.keyboard.press("Control+z")
    assert page.get("[studio.options.values, studio.depthFile]") == ["depth", None]
    assert page.page.locator("#undo").is_disabled()


def test_another_rough_mask_is_a_step_of_undo(page: Any) -> None:
    page.open(PHOTO)
    page.page.keyboard.press("2")
    rough = [np.quantile(DISPARITY, q) < DISPARITY for q in (0.3, 0.7)]
    masks = [np.where(d, 255, 0).astype(np.uint8) for d in rough]
    mattes = []
    for i, mask in enumerate(masks):
        load(page, "#mask-file", f"{i}.png", io.encode(mask, "m.png"))
        page.wait(f"studio.maskFile?.name === '{i}.png'")
        page.settle()
        mattes.append(page.picture("cut")[..., 3])
    assert (mattes[0] != mattes[1]).any()
    page.page.keyboard.press("Control+z")
    page.wait("studio.maskFile.name === '0.png'")
    page.settle()
    np.testing.assert_array_equal(page.picture("cut")[..., 3], mattes[0])


def test_a_damaged_project_has_a_clear_message(page: Any) -> None:
    page.open(PHOTO)
    page.stroke((50, 50), (100, 80))
    before = page.layer("colorize")
    project = page.download("Project")
    for data in (project[:-100], project[:40], b"bilateral studio 1\n{}\n"):
        load(page, "#file", "bad.studio", data)
        hint(page, "bad.studio is a damaged project")
        page.get("document.getElementById('hint').textContent = ''")
    np.testing.assert_array_equal(page.layer("colorize"), before)


def test_a_picture_pasted_or_dropped_in_depth_is_a_depth_map(page: Any) -> None:
    page.open(PHOTO)
    page.page.keyboard.press("3")
    levels = np.rint(200 * DEPTH / DEPTH.max()).astype(np.uint8)
    script = """([kind, bytes]) => {
      const file = new File([new Uint8Array(bytes)], `${kind}.png`, { type: 'image/png' });
      const data = new DataTransfer();
      data.items.add(file);
      window.dispatchEvent(kind === 'drop' ? new DragEvent('drop', { dataTransfer: data })
        : new ClipboardEvent('paste', { clipboardData: data })); }"""
    for kind in ("drop", "paste"):
        page.get(script, [kind, list(io.encode(levels, "a.png"))])
        page.wait(f"studio.depthFile?.name === '{kind}.png'")
        assert page.get("studio.name") == "photo.png"


def test_a_file_above_the_limit_is_not_sent(browser: Any) -> None:
    with running(limits=Limits(bytes=200_000)) as server:
        context = browser.new_context()
        page = StudioPage(context, server)
        page.open(PHOTO[:50, :60])
        for field in ("#file", "#mask-file", "#depth-file"):
            load(page, field, "a.png", bytes(190_000))
            hint(page, "the studio takes files of up to 0 MB")
            page.get("document.getElementById('hint').textContent = ''")
        assert page.get("[studio.link.up, studio.opening, studio.width]") == [True, None, 60]
        context.close()
