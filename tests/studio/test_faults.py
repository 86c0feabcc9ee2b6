"""Pages without a browser: faults, floods and readers that do not read end no page."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the studio needs starlette")
pytest.importorskip("uvicorn", reason="the studio needs uvicorn")

from bilateral import io
from bilateral.cli.demo.room import room
from bilateral.studio import connection as connection_module
from support.studio import Limits, Page, running

PHOTO, DISPARITY = room((120, 180))
PNG = io.encode(PHOTO, "a.png")


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


def test_an_unexpected_error_ends_no_page(monkeypatch: Any, capfd: Any) -> None:
    class FaultyTool:
        def picture(self, workspace: Any, view: Any, fields: Any, check: Any) -> Any:
            if fields["look"] == "fault":
                raise ZeroDivisionError("a fault")
            if fields["look"] == "memory":
                raise MemoryError
            return np.zeros((*view.shape, 3), np.uint8)

    monkeypatch.setattr(connection_module, "ColorizeTool", FaultyTool)
    with running() as server, Page(server) as page:
        page.open(PHOTO)
        for look, text in (("fault", "The studio made a mistake"), ("memory", "enough memory")):
            assert text in page.picture("colorize", look=look).fields["text"]
        assert page.picture("colorize", look="good").shape == (120, 180, 4)
    assert "ZeroDivisionError: a fault" in capfd.readouterr().err


def test_an_error_has_the_number_of_its_message(server: Any) -> None:
    with Page(server) as page:
        seq = page.send("open", b"no picture", name="a.png")
        assert page.receive("error").fields["seq"] == seq
        page.open(PHOTO)
        seq = page.send("depth", PNG, name="a.png")
        assert page.receive("hint").fields["seq"] == seq


def test_a_flood_of_files_waits_outside(monkeypatch: Any) -> None:
    """Files that wait for their turn take at most the size of one file, and the newest one."""
    gate, started = threading.Event(), threading.Event()
    original = connection_module.Workspace.open

    def slow_open(*arguments: Any) -> Any:
        started.set()
        assert gate.wait(60)
        return original(*arguments)

    monkeypatch.setattr(connection_module.Workspace, "open", slow_open)
    file = PNG + bytes(100_000)
    with running(limits=Limits(bytes=300_000)) as server, Page(server) as page:
        sender = threading.Thread(
            target=lambda: [page.send("open", file, name=f"{i}.png") for i in range(100)]
        )
        sender.start()
        assert started.wait(30)
        [connection] = server.studio.connections
        for _ in range(20):
            threading.Event().wait(0.02)
            waiting = sum(len(job.payload) for job in connection._jobs)
            assert waiting <= 300_000 + len(file)
        gate.set()
        for i in range(100):
            assert page.receive("opened").fields["name"] == f"{i}.png"
        sender.join(20)


def test_a_reader_that_does_not_read_blocks_no_other_page(server: Any) -> None:
    photo = np.zeros((1000, 1500, 3), np.uint8)
    with Page(server) as deaf, Page(server) as page:
        deaf.send("open", io.encode(photo, "a.png"), name="a.png")
        for _ in range(300):
            deaf.send("picture", tool="cut")
            deaf.send("ping")
        page.open(PHOTO)
        assert page.picture("cut").shape == (120, 180, 4)


def test_forgotten_files(server: Any) -> None:
    with Page(server) as page:
        page.open(PHOTO)
        page.send("depth", io.encode(DISPARITY, "d.pfm"), name="d.pfm")
        page.receive("depth")
        for what in ("depth", "mask"):
            page.send("forget", what=what)
            page.receive(what)
        assert "no depth map" in page.picture("depth").fields["text"]
        page.send("forget", what="photo")
        assert "expected" in page.receive("error").fields["text"]
        # The depth map of an example comes back.
        page.send("example", name="room")
        page.receive("opened")
        before = page.picture("depth", refine=False)
        height, width = before.shape[:2]
        slope = np.tile(np.linspace(1, 2, width, dtype=np.float32), (height, 1))
        page.send("depth", io.encode(slope, "d.pfm"), name="d.pfm")
        page.receive("depth")
        assert (page.picture("depth", refine=False) != before).any()
        page.send("forget", what="depth")
        page.receive("depth")
        np.testing.assert_array_equal(page.picture("depth", refine=False), before)


@pytest.mark.parametrize("size", [20, 60_000, 2**31 - 1])
def test_the_header_of_a_small_file_cannot_claim_much_memory(server: Any, size: int) -> None:
    """A file of some bytes that claims a huge picture is refused before memory is taken."""
    sizes = 2 * size.to_bytes(4, "big")
    with Page(server) as page:
        before = peak()
        page.send("open", PNG[:16] + sizes + PNG[24:], name="a.png")
        assert page.receive("error", "hint").fields["text"]
        page.send("open", f"Pf\n{size} {size}\n-1\n".encode() + bytes(100), name="a.pfm")
        assert page.receive("error", "hint").fields["text"]
        assert peak() - before < 100_000_000


def peak() -> int:
    path = Path("/proc/self/status")
    if not path.exists():
        pytest.skip("reads /proc")
    return 1024 * int(path.read_text().split("VmHWM:")[1].split()[0])
