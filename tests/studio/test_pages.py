"""Pages without a browser: the four tools, limits, hostile messages, many connections."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the studio needs starlette")
pytest.importorskip("uvicorn", reason="the studio needs uvicorn")

from websockets.exceptions import ConnectionClosed

from bilateral import io, tasks
from bilateral.cli.demo.room import room
from bilateral.studio import connection as connection_module
from support.studio import Limits, Page, running


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


def small_scene() -> tuple[Any, Any]:
    photo, disparity = room((120, 180))
    return photo, disparity


def strokes(photo: Any) -> Any:
    layer = np.zeros((*photo.shape[:2], 4), np.uint8)
    layer[10:14, 10:60] = (200, 60, 40, 255)
    layer[100:104, 30:150] = (60, 120, 60, 255)
    return layer


def scribbles(photo: Any) -> Any:
    layer = np.zeros((*photo.shape[:2], 4), np.uint8)
    layer[10:14, 10:60] = (240, 62, 62, 255)
    layer[100:104, 30:150] = (39, 194, 76, 255)
    return layer


def test_colorize_is_exactly_the_task(server: Any) -> None:
    photo, _ = small_scene()
    with Page(server) as page:
        opened = page.open(photo)
        assert (opened.fields["width"], opened.fields["height"]) == (180, 120)
        np.testing.assert_array_equal(page.photo, photo)
        layer = strokes(photo)
        page.paint("colorize", layer)
        np.testing.assert_array_equal(
            page.picture("colorize")[..., :3], tasks.colorize(photo, layer)
        )
        # One more stroke, as a patch of the layer.
        layer[50:60, 100:140] = (40, 60, 200, 255)
        page.paint("colorize", layer[50:60, 100:140], x=100, y=50)
        expected = tasks.colorize(photo, layer)
        np.testing.assert_array_equal(page.picture("colorize")[..., :3], expected)
        page.send("save", tool="colorize", what="picture")
        file = page.receive("file")
        assert file.fields["name"] == "photo.colour.png"
        np.testing.assert_array_equal(decode(file.payload), expected)
        page.send("save", tool="colorize", what="strokes")
        np.testing.assert_array_equal(decode(page.receive("file").payload), layer)


def decode(data: Any, name: str = "a.png") -> Any:
    return io.decode(bytes(data), io.Options(), name)


def test_a_photo_of_16_bits_is_saved_with_16_bits(server: Any) -> None:
    photo, _ = small_scene()
    deep = (photo[..., 1].astype(np.uint16) << 8) + 77
    layer = strokes(photo)
    with Page(server) as page:
        page.open(deep)
        page.paint("colorize", layer)
        page.send("save", tool="colorize", what="picture")
        found = decode(page.receive("file").payload)
        assert found.dtype == np.uint16
        np.testing.assert_array_equal(found, tasks.colorize(deep, layer))


def test_no_stroke_shows_the_gray_photo(server: Any) -> None:
    photo, _ = small_scene()
    with Page(server) as page:
        page.open(photo)
        picture = page.picture("colorize")
        assert (picture[..., :3] == picture[..., :1]).all()
        np.testing.assert_array_equal(page.picture("cut")[..., :3], photo)
        page.paint("colorize", np.full((4, 4, 4), (90, 90, 90, 255), np.uint8))
        hint = page.picture("colorize")
        assert "Paint one with a colour" in hint.fields["text"]


def test_cut_out_is_exactly_the_task(server: Any) -> None:
    photo, _ = small_scene()
    layer = scribbles(photo)
    with Page(server) as page:
        page.open(photo)
        page.paint("cut", layer[:50])
        assert "Now mark what belongs to the object" in page.picture("cut").fields["text"]
        page.paint("cut", layer)
        matte = tasks.cut_out(photo, layer)
        picture = page.picture("cut")
        np.testing.assert_array_equal(picture[..., 3], np.rint(matte * 255))
        np.testing.assert_array_equal(picture[..., :3], photo)
        for what, expected in (
            ("cutout", np.dstack([photo, np.rint(matte * 255).astype(np.uint8)])),
            ("matte", np.rint(matte * 65535).astype(np.uint16)),
            ("mask", np.where(matte > 0.5, 255, 0)),
            ("strokes", layer),
        ):
            page.send("save", tool="cut", what=what)
            np.testing.assert_array_equal(decode(page.receive("file").payload), expected)


def test_a_rough_mask(server: Any) -> None:
    photo, disparity = small_scene()
    rough = disparity > np.median(disparity)
    with Page(server) as page:
        page.open(photo)
        page.send(
            "mask", io.encode(np.where(rough, 255, 0).astype(np.uint8), "m.png"), name="m.png"
        )
        page.receive("mask")
        matte = tasks.cut_out(photo, mask=rough)
        picture = page.picture("cut", mask=True)
        np.testing.assert_array_equal(picture[..., 3], np.rint(matte * 255))
        assert (page.picture("cut", mask=False)[..., 3] == 255).all()
        page.send("mask", io.encode(np.zeros((3, 4), np.uint8), "m.png"), name="m.png")
        assert "must have 180 x 120 pixels" in page.receive("hint").fields["text"]


def test_depth_and_refocus(server: Any) -> None:
    photo, disparity = small_scene()
    depth = np.rint(120_000 / disparity).astype(np.uint16)
    depth[20:30, 20:30] = 0
    with Page(server) as page:
        page.open(photo)
        assert "no depth map" in page.picture("depth").fields["text"]
        page.send("depth", io.encode(depth, "d.png"), name="d.png")
        page.receive("depth")
        for look in ("color", "relief"):
            picture = page.picture("depth", look=look, refine=True)
            assert picture.shape == (120, 180, 4)
        raw = page.picture("depth", look="color", refine=False)
        assert (raw[22, 22, :3] == (40, 40, 44)).all()  # unknown
        page.send("save", tool="depth", what="map", refine=True)
        saved = decode(page.receive("file").payload)
        assert saved.dtype == np.uint16
        known = np.where(depth > 0, depth, np.nan).astype(np.float32)
        expected = tasks.refine_depth(known, photo)
        np.testing.assert_array_equal(saved, np.rint(expected))
        sharp = page.picture("refocus", x=90, y=110, aperture=0)
        np.testing.assert_array_equal(sharp[..., :3], photo)
        soft = page.picture("refocus", x=90, y=110, aperture=1)
        changes = np.abs(soft[..., :3].astype(int) - photo).mean(axis=(1, 2))
        assert changes[:40].mean() > 2 * changes[105:115].mean()


def test_corrections_of_a_depth_map(server: Any) -> None:
    photo, disparity = small_scene()
    depth = (120 / disparity).astype(np.float32)
    with Page(server) as page:
        page.open(photo)
        page.send("depth", io.encode(depth, "d.pfm"), name="d.pfm")
        page.receive("depth")
        palette = np.array(page.hello.fields["palette"], np.uint8).reshape(256, 3)
        layer = np.zeros((120, 180, 4), np.uint8)
        layer[60:70, 60:90] = (*palette[255], 255)  # as near as the nearest
        layer[10:20, 10:40] = (255, 0, 0, 255)  # wrong
        page.paint("depth", layer)
        page.send("save", tool="depth", what="float", refine=False)
        found = decode(page.receive("file").payload, "a.pfm")
        low = np.percentile(depth, 1)
        np.testing.assert_allclose(found[60:70, 60:90], low, rtol=1e-3)
        assert (found[10:20, 10:40] == 0).all()
        np.testing.assert_allclose(found[90:], depth[90:], rtol=1e-5)


def test_a_stereo_pair(server: Any) -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(0, 256, (60, 120, 3), np.uint8)
    right = np.roll(left, -6, axis=1)
    with Page(server) as page:
        page.open(left)
        page.send("stereo", io.encode(right, "r.png"), name="r.png", disparities=16)
        page.receive("depth")
        page.send("save", tool="depth", what="float", refine=False, values="disparity")
        found = decode(page.receive("file").payload, "a.pfm")
        assert abs(np.median(found) - 6) < 0.5


def test_a_preview_comes_first_for_large_photos(server: Any) -> None:
    photo, _ = room((700, 900))
    with Page(server) as page:
        page.open(photo)
        page.paint("colorize", strokes(photo))
        seq = page.send("picture", tool="colorize")
        first = page.receive("picture")
        assert first.fields["factor"] > 1
        assert first.fields["height"] == -(-700 // first.fields["factor"])
        full = page.full_picture(seq)
        np.testing.assert_array_equal(full[..., :3], tasks.colorize(photo, strokes(photo)))


def test_the_newest_stroke_wins(monkeypatch: Any) -> None:
    arrived = threading.Event()

    class PatientTool(connection_module.ColorizeTool):
        """No full size is made before all strokes have arrived."""

        def picture(self, workspace: Any, view: Any, fields: Any, check: Any) -> Any:
            assert view.factor > 1 or arrived.wait(60)
            check(0, 0.0)
            return super().picture(workspace, view, fields, check)

    monkeypatch.setattr(connection_module, "ColorizeTool", PatientTool)
    photo, _ = room((700, 900))
    with running() as server, Page(server) as page:
        page.open(photo)
        layer = strokes(photo)
        for i in range(30):
            layer[300 + i : 310 + i, 100 : 120 + 10 * i] = (40 + 5 * i, 90, 120, 255)
            page.paint("colorize", layer[300:350], y=300) if i else page.paint("colorize", layer)
            last = page.send("picture", tool="colorize")
        [connection] = server.studio.connections
        wait_until(lambda: connection._newest == last)
        arrived.set()
        answered = set()
        while True:
            message = page.receive("picture")
            if message.fields["factor"] == 1 and message.fields["last"]:
                answered.add(message.fields["seq"])
                if message.fields["seq"] == last:
                    break
        assert answered == {last}
        picture = page.picture("colorize")[..., :3]
        np.testing.assert_array_equal(picture, tasks.colorize(photo, layer))


def test_a_solve_that_nobody_wants_is_cancelled(monkeypatch: Any) -> None:
    """The callback of a solve ends it as soon as a newer request arrives."""
    started, steps = threading.Event(), []

    class SlowTool:
        def picture(self, workspace: Any, view: Any, fields: Any, check: Any) -> Any:
            if fields["look"] == "slow" and view.factor == 1:
                started.set()
                for step in range(2000):
                    steps.append(step)
                    check(step, 1.0)
                    threading.Event().wait(0.01)
            return np.zeros((*view.shape, 4), np.uint8)

    monkeypatch.setattr(connection_module, "ColorizeTool", SlowTool)
    with running() as server, Page(server) as page, Page(server) as other:
        page.open(room((700, 900))[0])
        other.open(small_scene()[0])
        page.send("picture", tool="colorize", look="slow")
        assert started.wait(10)
        # A slow page blocks no other page.
        assert other.picture("colorize", look="fast").shape == (120, 180, 4)
        assert page.picture("colorize", look="fast").shape == (700, 900, 4)
        assert len(steps) < 2000


def test_computations_have_a_limit_of_time(monkeypatch: Any) -> None:
    class EndlessTool:
        def picture(self, workspace: Any, view: Any, fields: Any, check: Any) -> Any:
            while True:
                check(0, 0.0)

    monkeypatch.setattr(connection_module, "ColorizeTool", EndlessTool)
    with running(limits=Limits(seconds=0.2)) as server, Page(server) as page:
        page.open(small_scene()[0])
        assert "was stopped" in page.picture("colorize").fields["text"]


def test_hostile_files_and_sizes(server: Any) -> None:
    photo, _ = small_scene()
    good = io.encode(photo, "a.png")
    header = good[:16] + (100_000).to_bytes(4, "big") + (100_000).to_bytes(4, "big") + good[24:]
    with Page(server) as page:
        for data, name in (
            (b"", "a.png"),
            (b"no picture", "a.png"),
            (header, "a.png"),
            (good[:200], "a.png"),
            (io.encode(np.zeros((3, 4, 5, 6)), "a.npy"), "a.npy"),
            (io.encode(np.zeros((30, 40, 7), np.uint8), "a.npy"), "a.npy"),
        ):
            page.send("open", data, name=name)
            assert page.receive("opened", "error", "hint").kind != "opened", name
        page.open(photo)
        for fields in (
            {"x": 0, "y": 0, "width": 10**6, "height": 10**6},
            {"x": 10**9, "y": 0, "width": 1, "height": 1},
            {"x": -1, "y": 0, "width": 1, "height": 1},
            {"x": 179, "y": 0, "width": 2, "height": 1},
            {"x": 0, "y": 0, "width": 1.5, "height": 1},
            {"x": 0, "y": 0, "width": 3, "height": 1},
            {"x": 0, "y": 0, "width": 2, "height": 1, "tool": "nothing"},
            {"x": 0, "y": 0},
        ):
            page.send("paint", bytes(8), **{"tool": "colorize", **fields})
            assert page.receive("error", "hint").fields["text"]
        page.send("picture", tool="colorize", seq=-5)
        page.receive("error")
        page.send("picture", tool=["colorize"])
        page.receive("error")
        page.send("nonsense")
        assert "unknown kind" in page.receive("error").fields["text"]
        page.send("example", name="../../etc/passwd")
        page.receive("hint")
        page.socket.send(b"\xff" * 100)
        page.receive("error")
        # After all this the page still works.
        page.paint("colorize", strokes(photo))
        assert page.picture("colorize").shape == (120, 180, 4)


def test_refocus_fields_are_checked(server: Any) -> None:
    photo, disparity = small_scene()
    with Page(server) as page:
        page.open(photo)
        page.send("depth", io.encode(disparity, "d.pfm"), name="d.pfm")
        page.receive("depth")
        for x in ("a", None, True, [1]):
            hint = page.picture("refocus", x=x, y=0, aperture=1, values="disparity")
            assert "x: expected a number" in hint.fields["text"]
        far = page.picture("refocus", x=1e30, y=-1e30, aperture=7, values="disparity")
        assert far.shape == (120, 180, 4)


def test_text_instead_of_bytes_ends_only_that_page(server: Any) -> None:
    with Page(server) as page, Page(server) as other:
        page.socket.send("text")
        with pytest.raises(ConnectionClosed):
            page.receive("never", seconds=10)
        other.open(small_scene()[0])
        assert other.picture("colorize").shape == (120, 180, 4)


def test_limits_have_clear_messages() -> None:
    limits = Limits(pixels=30_000, total_pixels=40_000, pages=2, bytes=200_000)
    photo, _ = small_scene()
    with running(limits=limits) as server, Page(server) as one, Page(server) as two:
        assert "megapixels" in one.open(np.zeros((200, 200), np.uint8)).fields["text"]
        assert one.open(photo).kind == "opened"
        assert "Close another page" in two.open(photo).fields["text"]
        with pytest.raises(AssertionError):  # the third page gets "full" instead of a greeting
            refuse_third(server)
        # The head of a message that claims 300,000 bytes: nothing that is on the way can be lost.
        one.socket.socket.sendall(b"\x82\xff" + (300_000).to_bytes(8, "big") + bytes(4))
        with pytest.raises(ConnectionClosed) as closed:
            one.receive("never", seconds=10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def refuse_third(server: Any) -> None:
    try:
        Page(server).close()
    except ConnectionClosed as error:
        raise AssertionError("refused") from error


def test_an_idle_page_gives_its_memory_back() -> None:
    with running(limits=Limits(idle_seconds=0.3)) as server, Page(server) as page:
        with pytest.raises(ConnectionClosed) as closed:
            open_and_rest(page)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4408
        wait_until(lambda: not server.studio.connections)


def open_and_rest(page: Page) -> None:
    """Open a photograph, unless the page is idle before that, and wait for the end."""
    page.open(small_scene()[0])
    page.receive("never", seconds=10)


def wait_until(condition: Any, seconds: float = 20) -> None:
    waited = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        waited.wait(0.02)
    raise AssertionError("it did not happen")


def resident() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) * 1024


@pytest.mark.stress
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")
def test_a_thousand_dropped_connections_leave_nothing(server: Any) -> None:
    photo, _ = small_scene()

    def drop(count: int) -> None:
        for i in range(count):
            page = Page(server)
            if i % 10 == 0:
                page.open(photo)
                page.paint("colorize", strokes(photo))
                page.send("picture", tool="colorize")
            page.socket.socket.close()  # no farewell
            page.close()
        wait_until(lambda: not server.studio.connections)

    drop(200)
    before = resident(), threading.active_count()
    drop(1000)
    assert resident() - before[0] < 0.1 * before[0]
    assert threading.active_count() <= before[1] + 2 * server.studio.limits.pages
