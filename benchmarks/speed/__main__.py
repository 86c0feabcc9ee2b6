"""The one command: ``python -m benchmarks.speed [--data DIR]``, from the repository's root."""

import argparse
import sys
from contextlib import nullcontext
from typing import Any

from benchmarks import command, machine, photos
from benchmarks.speed import peers, report
from benchmarks.speed.cases import NOISE, SIGMAS, SMOOTHNESS, STEPS, Problem, problem
from benchmarks.speed.compare import compare, compare_with_oracle, summary
from benchmarks.speed.convergence import convergence
from benchmarks.speed.growth import growth
from benchmarks.speed.memory import peak_memory
from benchmarks.speed.startup import import_time

ORACLE_SIDE = 256
IMPORTS = 10


def main() -> None:
    options = command.options(
        "speed",
        "Time the bilateral solver in turns with OpenCV's, and the tests' oracle.",
        data="photographs, *.jpg or *.png (scikit-image's own)",
        quick="one repeat of one photograph's middle megapixel",
        repeats=7,
        opencv="ximgproc's FastBilateralSolver",
    )
    command.write("speed", measure(options), report.as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    circumstances = command.circumstances()
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
        **circumstances,
        "versions": circumstances["versions"] | (opencv or {}),
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
