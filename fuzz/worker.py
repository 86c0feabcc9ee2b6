"""Run the cases of one harness in a process of its own, and keep count in a small shared file.

The parent reads the file if the process dies, and so knows the seed that killed it.
"""

from __future__ import annotations

import json
import mmap
import signal
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.call import Call, Finding, Harness
from fuzz.draw import Draw

COUNTS = struct.Struct("<6q")
SECONDS_OF_A_CASE = 120
"""A case that takes more processor time ends the process."""


class Counts(NamedTuple):
    """State of a worker."""

    seed: int = 0
    cases: int = 0
    calls: int = 0
    valid: int = 0
    findings: int = 0
    grown: int = 0
    """Kilobytes by which the process grew since its first hundred cases."""


def run_case(harness: Harness, seed: int, draw: Draw) -> tuple[int, int]:
    """Run the case of a seed; return its number of calls and of valid calls, or raise."""
    draw.restart(seed)
    calls = valid = 0
    case = harness(draw)
    try:
        call = next(case)
        while True:
            calls += 1
            valid += call.wrong is None and not call.errors
            call = case.send(perform(call))
    except StopIteration:
        return calls, valid


def perform(call: Call) -> Any:
    """Do a call and return its result, or the error that it may raise."""
    if call.wrong is None:
        try:
            return call.function(*call.args, **call.options)
        except call.errors as error:
            return error
        except Exception as error:
            error.add_note(f"in {call}")
            raise
    try:
        call.function(*call.args, **call.options)
    except (ValueError, TypeError) as error:
        if call.wrong not in str(error):
            raise Finding(f"{call}: the message does not name {call.wrong!r}: {error}") from error
        return None
    raise Finding(f"{call}: no error, but {call.wrong!r} is wrong")


def resident() -> int:
    """Kilobytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def quiet_warnings() -> None:
    """Warnings are errors, except those that random problems deserve."""
    import bilateral
    from bilateral.validation import ZeroDepthWarning

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", bilateral.ConvergenceWarning)
    warnings.simplefilter("ignore", ZeroDepthWarning)
    warnings.filterwarnings("ignore", message=".*look swapped")


def work(name: str, first: int, seconds: float, cases: int, state: Path, log: Path) -> None:
    """Run cases from the seed `first` on, until the time or the number of cases is used up."""
    from fuzz.harnesses import load

    harness = load(name)
    quiet_warnings()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    draw, end = Draw(), time.monotonic() + seconds
    calls = valid = findings = base = 0
    with open(state, "r+b") as file, mmap.mmap(file.fileno(), COUNTS.size) as shared:
        for done in range(cases):
            seed = first + done
            COUNTS.pack_into(shared, 0, seed, done, calls, valid, findings, base)
            if done % 64 == 0:
                if time.monotonic() > end:
                    break
                signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_CASE)
            try:
                more, right = run_case(harness, seed, draw)
                calls += more
                valid += right
            except Exception as error:
                findings += 1
                note(log, name, seed, error)
            if done == 100:
                before = resident()
            if done % 1000 == 999:
                base = resident() - before
        else:
            done = cases
        COUNTS.pack_into(shared, 0, first + done, done, calls, valid, findings, base)


def note(log: Path, name: str, seed: int, error: Exception) -> None:
    """Write a finding to the log."""
    text = "".join(traceback.format_exception(error, limit=-6))
    entry = {"harness": name, "seed": seed, "error": one_line(error), "text": text}
    with open(log, "a") as file:
        file.write(json.dumps(entry) + "\n")


def one_line(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


if __name__ == "__main__":
    name, first, seconds, cases, state, log = sys.argv[1:]
    work(name, int(first), float(seconds), int(cases), Path(state), Path(log))
