"""The one command: ``python -m benchmarks.speed.cuda [--data DIR]``, from the repository's root."""

import argparse
import sys
from itertools import islice
from typing import Any

import torch

from benchmarks import command, photos
from benchmarks.photos import Photo
from benchmarks.speed.cases import SMOOTHNESS, STEPS, problem
from benchmarks.speed.cuda import calls, events, report
from benchmarks.speed.cuda.floors import floors

NAME = "speed.cuda"
REPEATS, QUICK_REPEATS = 30, 3
MIDDLE, CROP, PHOTO = (1080, 1920), (480, 640), (375, 500)
QUICK, QUICK_CROP = (512, 512), (256, 384)


def main() -> None:
    options = command.options(
        NAME,
        "Time the stages of a solve on a CUDA device, and whole calls from PyTorch.",
        data="photographs, *.jpg or *.png (scikit-image's own)",
        quick=f"{QUICK_REPEATS} repeats of one photograph's middle, and nothing that takes much",
        repeats=REPEATS,
        warm_ups=f"{events.WARM_UPS} warm-ups",
    )
    if not torch.cuda.is_available():
        print("CUDA skipped: PyTorch finds no device here. All else works without one.")
        return
    command.write(NAME, measure(options), report.as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    quick = options.quick
    repeats = QUICK_REPEATS if quick else options.repeats
    replays = QUICK_REPEATS if quick else events.REPLAYS
    circumstances = command.circumstances()
    bandwidth = events.copy_bandwidth(events.REPLAYS)
    say(f"copy: {bandwidth / 1e12:.2f} TB/s")
    given = list(islice(photos.photographs(options.data), 1 if quick else None))
    if quick:
        given = [Photo(photo.name, photos.centre(photo.pixels, *QUICK)) for photo in given]
    crop = QUICK_CROP if quick else CROP
    rows = [measure_photograph(photo, bandwidth, crop, replays, repeats) for photo in given]
    task = calls.Task.of(problem(given[0]))
    return {
        **circumstances,
        "device": device(),
        "settings": {
            "repeats": repeats,
            "replays": replays,
            "warm_ups": events.WARM_UPS,
            "quick": quick,
            "photographs": photos.OWN_RECIPE if options.data is None else "from a folder",
            "smoothness": SMOOTHNESS,
            "steps": STEPS,
        },
        "targets": report.TARGETS,
        "bandwidth": bandwidth,
        "photographs": rows,
        "many_sizes": said("many sizes", calls.many_sizes(task, crop)),
        "large": None if quick else said("large", calls.large(given[0])),
        "out_of_memory": None if quick else said("no memory", calls.out_of_memory(task, MIDDLE)),
    }


def measure_photograph(
    photo: Photo, bandwidth: float, crop: tuple[int, int], replays: int, repeats: int
) -> dict[str, Any]:
    """Stages, their floors, and calls."""
    from benchmarks.speed.cuda.stages import stages  # with Triton, which not all machines have

    given = problem(photo)
    times, sizes = stages(given, replays)
    say(f"{photo.name}: " + ", ".join(f"{k} {1e6 * t.median:.1f} us" for k, t in times.items()))
    task = calls.Task.of(given)
    return {
        "photo": photo.name,
        "sizes": sizes,
        "stages": times,
        "floors": floors(sizes, bandwidth),
        "whole": said("whole", calls.whole(task, repeats)),
        "middle": said("middle", calls.middle(task, MIDDLE, repeats)),
        "batch": said("batch", calls.batch(task, crop, repeats)),
        "training": said("training", calls.training(task, MIDDLE, repeats)),
        "segmentation": said("segmentation", calls.segmentation(task, PHOTO, repeats)),
        "agreement": said("agreement", calls.agreement(task)),
    }


def device() -> dict[str, Any]:
    import triton

    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": properties.name,
        "bytes": properties.total_memory,
        "cache_bytes": properties.L2_cache_size,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
    }


def said(what: str, row: dict[str, Any]) -> dict[str, Any]:
    """Show a row as soon as it is there."""
    say(f"{what}: {row}")
    return row


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
