"""A studio in its own process, and its page in Chromium."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

# Times from the end of a stroke to the frame after the one that draws its colours.
_HOOKS = """() => {
  window.ends = []; window.seen = [];
  addEventListener('pointerup', (event) => {
    const time = event.timeStamp;
    // The page's own listener asks for the picture first; then its number is known.
    setTimeout(() => window.ends.push({ time, seq: studio.seq }), 0);
  });
  view.onDraw = () => {
    const { picture, isPreview } = studio.newest;
    if (!picture) return;
    const seq = picture.seq;
    requestAnimationFrame((now) => window.seen.push({ now: performance.now(), seq, isPreview }));
  };
  window.frames_ = [];
  const tick = (now) => { window.frames_.push(now); requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""


class Studio:
    """A studio in its own process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "bilateral", "studio", "--no-open"]
        self.began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]

    def memory(self) -> int:
        """Resident memory in bytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(text.split("VmRSS:")[1].split()[0])

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Page:
    """A page, driven by the mouse."""

    def __init__(self, browser: Any, url: str) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 800})
        self.page.goto(url)
        self.wait("studio.link.up")

    def wait(self, condition: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not self.page.evaluate(f"!!({condition})"):
            assert time.monotonic() < end, condition
            time.sleep(0.005)

    def open(self, path: Path) -> None:
        self.page.set_input_files("#file", str(path))
        self.wait("studio.original && studio.pictures.colorize?.full?.seq === studio.seq")
        self.page.evaluate(_HOOKS)

    def stroke(self, i: int, steps: int = 12) -> None:
        """Paint a short stroke; each has another place and colour."""
        color = f"#{(40 * i) % 256:02x}{(90 + 70 * i) % 256:02x}{(200 + 30 * i) % 256:02x}"
        self.page.evaluate("c => { document.getElementById('color').value = c; }", color)
        x, y = 280 + (137 * i) % 560, 180 + (89 * i) % 420
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + 40, y + 25, steps=steps)
        mouse.up()

    def settle(self) -> None:
        self.wait("!studio.timer && studio.pictures.colorize?.full?.seq === studio.seq")
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def latency(self, strokes: int) -> dict[str, list[float]]:
        """Seconds from the end of each stroke to its first colours, and to the full size."""
        first, full = [], []
        for i in range(strokes + 2):
            self.page.evaluate("() => { window.ends = []; window.seen = []; }")
            self.stroke(i)
            self.settle()
            [end] = self.page.evaluate("window.ends")
            frames = [f for f in self.page.evaluate("window.seen") if f["seq"] >= end["seq"]]
            if i >= 2:  # the first strokes build the grid
                first.append((frames[0]["now"] - end["time"]) / 1000)
                whole = next(f for f in frames if not f["isPreview"])
                full.append((whole["now"] - end["time"]) / 1000)
        return {"first": first, "full": full}

    def frame_rate(self, seconds: float) -> dict[str, float]:
        """Frames per second while the mouse paints: the mean, and the slowest quarter second."""
        mouse, end, i = self.page.mouse, time.monotonic() + seconds, 0
        mouse.move(300, 300)
        mouse.down()
        self.page.evaluate("() => { window.frames_.length = 0; }")
        while time.monotonic() < end:
            i += 1
            mouse.move(300 + (7 * i) % 500, 300 + (3 * i) % 300)
        times = self.page.evaluate("window.frames_.slice()")
        mouse.up()
        windows: dict[int, int] = {}
        for at in times:
            windows[int((at - times[0]) / 250)] = windows.get(int((at - times[0]) / 250), 0) + 1
        counts = [windows.get(w, 0) for w in range(1, max(windows))]
        mean = 1000 * (len(times) - 1) / (times[-1] - times[0])
        return {"mean": mean, "slowest": 4.0 * min(counts, default=0)}
