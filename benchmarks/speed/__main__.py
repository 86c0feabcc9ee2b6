"""The one command: ``python -m benchmarks.speed [--data DIR]``, from the repository's root."""

import argparse
import datetime
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks import machine, photos
from benchmarks.speed import peers, report
from benchmarks.speed.cases import NOISE, SIGMAS, SMOOTHNESS, STEPS, Problem, problem
from benchmarks.speed.compare import compare, compare_with_oracle, summary
from benchmarks.speed.convergence import convergence
from benchmarks.speed.growth import growth
from benchmarks.speed.memory import peak_memory
from benchmarks.speed.startup import import_time
from benchmarks.tables import as_json

ORACLE_SIDE = 256
IMPORTS = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description="Time the bilateral solver in turns with OpenCV's, and the tests' oracle.",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="photographs, *.jpg or *.png (scikit-image's own)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("benchmark-results"),
        help="where to write speed.json and speed.md (%(default)s)",
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", default=7, help="after one warm-up (%(default)s)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one repeat of one photograph's middle megapixel"
    )
    parser.add_argument(
        "--opencv-python",
        metavar="PYTHON",
        default="/usr/bin/python3",
        help="a Python whose cv2 has ximgproc's FastBilateralSolver (%(default)s)",
    )
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats: expected at least 1, got {options.repeats}.")
    if options.quick:
        options.repeats = 1
    return options


def main() -> None:
    options = arguments()
    results = measure(options)
    text = report.as_text(results)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "speed.json").write_text(as_json(results))
    (options.output / "speed.md").write_text(text)
    print(text)
    print(f"Written: {options.output / 'speed.json'}, {options.output / 'speed.md'}")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    load = os.getloadavg()[0]  # others' work on the machine, before ours adds to it
    thread_counts = (1, 2) if machine.cores() >= 2 else (1,)
    opencv = peers.opencv_versions(options.opencv_python)
    skipped = None if opencv else peers.skipped(options.opencv_python)
    say(skipped or f"OpenCV: {options.opencv_python}")
    settings = {
        "repeats": options.repeats,
        "quick": options.quick,
        "photographs": photos.OWN_RECIPE if options.data is None else "from a folder",
        "smoothness": SMOOTHNESS,
        "steps": STEPS,
        "noise": NOISE,
        "threads": thread_counts,
    }
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": machine.cpu_model(), "cores": machine.cores(), "load_before": load},
        "versions": machine.versions() | (opencv or {}),
        "settings": settings,
        "targets": report.TARGETS,
        "opencv_skipped": skipped,
        **measure_photographs(options, opencv is not None, thread_counts),
        "import": import_time(1 if options.quick else IMPORTS),
    }


def measure_photographs(
    options: argparse.Namespace, with_opencv: bool, thread_counts: tuple[int, ...]
) -> dict[str, Any]:
    cases: list[dict[str, Any]] = []
    oracle: list[dict[str, Any]] = []
    converging: list[dict[str, Any]] = []
    memory: list[dict[str, Any]] = []
    growing: dict[str, Any] = {}
    threads, repeats = thread_counts[-1], options.repeats
    for photo in photos.photographs(options.data):
        name = {"photo": photo.name}
        task = problem(photo)
        if options.quick:
            task = task.centre(*photos.QUICK_SHAPE)
        with open_peer(options.opencv_python if with_opencv else None, task, threads) as peer:
            for sigma in SIGMAS:
                say(f"{photo.name}, sigma {sigma}")
                cases.append(name | compare(task, sigma, peer, thread_counts, repeats))
        crop = task.centre(ORACLE_SIDE, ORACLE_SIDE)
        oracle += [name | compare_with_oracle(crop, sigma, threads, repeats) for sigma in SIGMAS]
        say(f"{photo.name}, convergence")
        small = task.centre(*photos.QUICK_SHAPE)
        converging += [name | row for row in convergence(small, SIGMAS[0], threads, repeats)]
        memory.append(name | peak_memory(task, SIGMAS[0]))
        if not growing:  # one photograph is enough, and the tilings are large
            say(f"{photo.name}, growth")
            growing = name | growth(task, SIGMAS[0], threads, repeats, options.quick)
        if options.quick:
            break
    return {
        "cases": cases,
        "summary": summary(cases),
        "oracle": oracle,
        "convergence": converging,
        "memory": memory,
        "growth": growing,
    }


def open_peer(python: str | None, task: Problem, threads: int) -> peers.OpenCV | nullcontext[None]:
    return nullcontext() if python is None else peers.OpenCV(python, task, threads)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
