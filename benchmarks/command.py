"""What the benchmark commands have in common: their options, and what they write."""

import argparse
import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.tables import as_json

Results = dict[str, Any]


def options(
    name: str,
    does: str,
    *,
    data: str,
    quick: str,
    repeats: int,
    warm_ups: str = "one warm-up",
    opencv: str | None = None,
) -> argparse.Namespace:
    """Parse the command line.

    Parameters
    ----------
    name : str
        Of the package below `benchmarks`, and of the files written.
    does : str
        What the command does.
    data, quick : str
        What the options ``--data`` and ``--quick`` mean.
    repeats : int
        By default.
    warm_ups : str
        What comes before the repeats.
    opencv : str, optional
        What is needed of OpenCV, for an option ``--opencv-python``.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=does)
    parser.add_argument("--data", type=Path, metavar="DIR", help=data)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("benchmark-results"),
        help=f"where to write {name}.json and {name}.md (%(default)s)",
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", default=repeats, help=f"after {warm_ups} (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    if opencv is not None:
        parser.add_argument(
            "--opencv-python",
            metavar="PYTHON",
            default="/usr/bin/python3",
            help=f"a Python whose cv2 has {opencv} (%(default)s)",
        )
    given = parser.parse_args()
    if given.repeats < 1:
        parser.error(f"--repeats: expected at least 1, got {given.repeats}.")
    if given.data is not None and not given.data.is_dir():
        parser.error(f"--data: expected a folder, got {given.data}.")
    if given.quick:
        given.repeats = 1
    return given


def circumstances() -> Results:
    """When, where and with what it was measured; call it before the work starts."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": machine.cpu_model(),
            "cores": machine.cores(),
            "load_before": os.getloadavg()[0],
        },
        "versions": machine.versions(),
    }


def write(name: str, results: Results, as_text: Callable[[Results], str], folder: Path) -> None:
    """Write the results as JSON and as text, and print the text."""
    text = as_text(results)
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / f"{name}.json", folder / f"{name}.md"
    files[0].write_text(as_json(results))
    files[1].write_text(text)
    print(text)
    print("Written: " + ", ".join(map(str, files)))
