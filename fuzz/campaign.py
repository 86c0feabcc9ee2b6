"""Run harnesses side by side, each in processes of its own, and add up what they counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fuzz.worker import COUNTS, Counts

SLICE_SECONDS = 60.0
"""A process runs one harness for about this long, times its weight."""
WEIGHTS = {"solve": 3.0, "solver": 2.0, "robust": 2.0, "grid": 2.0, "features": 2.0, "files": 4.0}
"""Parts of the time; 1 for the others."""
BROKEN = ("commands", "exr", "files", "messages")
"""Harnesses whose inputs are damaged on purpose: they do not count for the valid share."""
MOST_FINDINGS = 50
"""Findings of one harness that are listed."""


@dataclass
class Total:
    """What the processes of one harness counted."""

    harness: str
    cases: int = 0
    calls: int = 0
    valid: int = 0
    deaths: int = 0
    findings: int = 0
    seconds: float = 0.0
    most_growth: int = 0
    """Kilobytes: the largest growth of a process after its first hundred cases."""
    listed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def valid_share(self) -> float:
        """Share of calls with valid inputs."""
        return self.valid / self.calls if self.calls else 0.0


class Campaign:
    """Harnesses, the time for each, and the next seed of each."""

    def __init__(
        self, names: Sequence[str], seed: int, seconds: float, cases: int | None, jobs: int
    ) -> None:
        self.totals = {name: Total(name) for name in names}
        self.seed = seed
        self._next = dict.fromkeys(names, seed)
        self._seconds = seconds
        self._cases = cases
        self._jobs = jobs
        self._lock = threading.Lock()
        self._queue: list[tuple[str, float]] = []

    def run(self, report: Path | None = None) -> None:
        """Run everything; write the report after each slice."""
        weights = {name: WEIGHTS.get(name, 1.0) for name in self.totals}
        unit = self._seconds * self._jobs / sum(weights.values())
        rounds = max(1, round(unit / SLICE_SECONDS))
        self._queue = [
            (name, weight * unit / rounds)
            for _ in range(rounds)
            for name, weight in weights.items()
        ]
        self._queue.reverse()
        threads = [threading.Thread(target=self._take, args=(report,)) for _ in range(self._jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _take(self, report: Path | None) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    return
                name, seconds = self._queue.pop()
            self._slice(name, seconds)
            if report is not None:
                with self._lock:
                    self.save(report)

    def _slice(self, name: str, seconds: float) -> None:
        """Run one harness for some time; start again after a death."""
        end, total = time.monotonic() + seconds, self.totals[name]
        began = time.monotonic()
        while time.monotonic() < end:
            limit = 1 << 60 if self._cases is None else self._cases - total.cases
            if limit <= 0:
                break
            with self._lock:  # another process of this harness gets other seeds
                first = self._next[name]
                self._next[name] += 10_000_000
            counts, finished = self._process(name, first, end - time.monotonic(), limit, total)
            with self._lock:
                total.cases += counts.cases
                total.calls += counts.calls
                total.valid += counts.valid
                total.findings += counts.findings
                total.most_growth = max(total.most_growth, counts.grown)
            if finished:
                break
        total.seconds += time.monotonic() - began

    def _process(
        self, name: str, first: int, seconds: float, cases: int, total: Total
    ) -> tuple[Counts, bool]:
        with tempfile.TemporaryDirectory() as folder:
            state, log, errors = (os.path.join(folder, part) for part in ("state", "log", "errors"))
            with open(state, "wb") as file:
                file.write(COUNTS.pack(*Counts(seed=first)))
            open(log, "w").close()
            command = [sys.executable, "-m", "fuzz.worker", name, str(first), str(seconds)]
            with open(errors, "wb") as stream:
                process = subprocess.run(
                    [*command, str(cases), state, log], stdout=stream, stderr=stream, check=False
                )
            with open(state, "rb") as file:
                counts = Counts(*COUNTS.unpack(file.read()))
            with open(log) as file:
                found = [json.loads(line) for line in file]
            if process.returncode != 0:
                with open(errors, errors="replace") as file:
                    text = file.read()
                found.append(self._death(name, counts.seed, process.returncode, text))
        with self._lock:
            total.deaths += process.returncode != 0
            room = MOST_FINDINGS - len(total.listed)
            total.listed += found[: max(0, room)]
        for finding in found[:5]:
            print(f"finding {finding['harness']}:{finding['seed']} {finding['error']}", flush=True)
        return counts, process.returncode == 0

    @staticmethod
    def _death(name: str, seed: int, code: int, text: str) -> dict[str, Any]:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return {
            "harness": name,
            "seed": seed,
            "error": f"the process ended: {how}",
            "text": text[-6000:],
        }

    @property
    def findings(self) -> int:
        """Number of findings and deaths."""
        return sum(total.findings + total.deaths for total in self.totals.values())

    def save(self, path: Path) -> None:
        """Write the counts as JSON, and as a table beside it."""
        rows = [asdict(total) for total in self.totals.values()]
        path.write_text(json.dumps({"seed": self.seed, "harnesses": rows}, indent=1))
        path.with_suffix(".md").write_text(self.table())

    def table(self) -> str:
        """Return the counts as a Markdown table."""
        lines = [
            "| harness | calls | valid | findings | calls per second | growth |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        for total in self.totals.values():
            rate = total.calls / total.seconds if total.seconds else 0
            growth = total.most_growth / 1024
            lines.append(
                f"| {total.harness} | {total.calls:,} | {total.valid_share:.0%} | "
                f"{total.findings + total.deaths} | {rate:,.0f} | {growth:.0f} MB |"
            )
        every = list(self.totals.values())
        calls = sum(total.calls for total in every)
        whole = [total for total in every if total.harness not in BROKEN]
        valid = sum(total.valid for total in whole) / max(1, sum(total.calls for total in whole))
        lines.append(f"| all | {calls:,} | {valid:.0%} without files | {self.findings} | | |")
        return "\n".join(lines) + "\n"
