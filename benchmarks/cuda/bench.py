"""Time the stages of a solve on a CUDA device, and whole calls from PyTorch."""

from itertools import islice
from typing import Any

import torch

from benchmarks.common import photos
from benchmarks.common.cells import Setting
from benchmarks.common.command import say
from benchmarks.common.photos import Photo
from benchmarks.cuda import calls, camera, events, planes, report
from benchmarks.cuda.floors import floors
from benchmarks.speed.cases import SMOOTHNESS, STEPS, problem

TITLE, REPEATS, QUICK_REPEATS = "Speed on CUDA", 30, 3
MIDDLE, CROP, PHOTO = (1080, 1920), (480, 640), (375, 500)
QUICK, QUICK_CROP = (512, 512), (256, 384)

as_text = report.as_text


def skipped() -> str | None:
    if torch.cuda.is_available():
        return None
    return "CUDA skipped: PyTorch finds no device here. All else works without one."


def measure(setting: Setting) -> dict[str, Any]:
    quick = setting.quick
    repeats = QUICK_REPEATS if quick else setting.repeats
    replays = QUICK_REPEATS if quick else events.REPLAYS
    bandwidth = events.copy_bandwidth(events.REPLAYS)
    say(f"copy: {bandwidth / 1e12:.2f} TB/s")
    folder = setting.data.photographs() or setting.data.root
    images = list(islice(photos.photographs(folder), 1 if quick else None))
    if quick:
        images = [Photo(photo.name, photos.centre(photo.pixels, *QUICK)) for photo in images]
    crop = QUICK_CROP if quick else CROP
    rows = [measure_photograph(photo, bandwidth, crop, replays, repeats) for photo in images]
    task = calls.Task.of(problem(images[0]))
    return {
        "device": device(),
        "settings": {
            **{"repeats": repeats, "replays": replays, "warm_ups": events.WARM_UPS, "quick": quick},
            **{"photographs": photos.recipe(folder), "smoothness": SMOOTHNESS, "steps": STEPS},
        },
        "targets": report.TARGETS,
        "bandwidth": bandwidth,
        "photographs": rows,
        "many_sizes": calls.many_sizes(task, crop),
        "large": None if quick else calls.large(images[0]),
        "out_of_memory": None if quick else calls.out_of_memory(task, MIDDLE),
    }


def measure_photograph(
    photo: Photo, bandwidth: float, crop: tuple[int, int], replays: int, repeats: int
) -> dict[str, Any]:
    from benchmarks.cuda.stages import stages  # needs Triton, which not all machines have

    task = problem(photo)
    times, counts = stages(task, replays)
    row = {"photo": photo.name, "sizes": counts, "stages": times}
    row["floors"] = floors(counts, bandwidth)
    say(f"{row}")
    on_device = calls.Task.of(task)
    sizes = {"middle": (MIDDLE,), "batch": (crop,), "training": (MIDDLE,), "segmentation": (PHOTO,)}
    named = {name: (*size, repeats) for name, size in ({"whole": ()} | sizes).items()}
    for name, arguments in (named | {"agreement": ()}).items():
        row[name] = getattr(calls, name)(on_device, *arguments)
        say(f"{name}: {row[name]}")
    row["camera"] = camera.camera(on_device, MIDDLE, repeats)
    say(f"camera: {row['camera']}")
    row["planes"] = planes.planes(on_device, MIDDLE, repeats)
    say(f"planes: {row['planes']}")
    return row


def device() -> dict[str, Any]:
    import triton

    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        **{"name": properties.name, "bytes": properties.total_memory},
        **{"cache_bytes": properties.L2_cache_size, "torch": torch.__version__},
        **{"cuda": torch.version.cuda, "triton": triton.__version__},
    }
