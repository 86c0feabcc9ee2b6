"""Time whole calls of the planar model in turns with the constant one, and measure its memory."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import bilateral
from benchmarks.common import Array, machine, photos
from benchmarks.common.cells import QUICK_SHAPE, Results, Setting
from benchmarks.common.machine import Others
from benchmarks.common.tables import OTHERS, at_most, bullets, page, table
from benchmarks.common.timing import in_turns, stopwatch
from benchmarks.speed.cases import problem

SHAPE = (1024, 1024)
MODELS = ("constant", "planar")
# fraction of known pixels and smoothness
INPUTS = {"1 % known": (0.01, 0.03), "all known": (1.0, 4.0)}
SLOWER, BYTES = 3.5, 120


def solve(reference: Array, target: Array, smoothness: float, model: str) -> Any:
    """Solve by the public function with its default sigmas of 8: the call that is timed."""
    return bilateral.solve(reference, target, smoothness=smoothness, model=model, return_info=True)


def measure(setting: Setting) -> Iterator[Results]:
    """Yield times, steps and memory of both models for each photograph and input."""
    shape = QUICK_SHAPE if setting.quick else SHAPE
    for photo in photos.photographs(setting.data.photographs()):
        task = problem(photo).centre(*shape)
        for name, (fraction, smoothness) in INPUTS.items():
            known = np.random.default_rng(0).random(shape) < fraction
            target = np.where(known, task.target, np.float32(np.nan))
            call = partial(solve, task.reference, target, smoothness)
            others = Others()
            times = in_turns({model: stopwatch(call, model) for model in MODELS}, setting.repeats)
            other_work = others.cores()
            infos = {model: call(model)[1] for model in MODELS}
            grown = {model: machine.in_fresh_process(growth, call, model) for model in MODELS}
            yield {
                **{"photo": photo.name, "input": name, "times": times, "other_work": other_work},
                "vertices": infos["planar"].n_vertices,
                "steps": {model: info.iterations for model, info in infos.items()},
                "ratio": times["planar"].median / times["constant"].median,
                "bytes": {model: size / known.size for model, size in grown.items()},
            }
        if setting.quick:
            return


def growth(call: Any, model: str) -> int:
    """Return the bytes by which a call raises the peak memory, without its output."""
    bilateral.solve(np.zeros((16, 16), np.uint8), np.zeros((16, 16), np.float32), model=model)
    raised, (x, _) = machine.growth(partial(call, model))
    return raised - x.nbytes


def as_text(rows: list[Results]) -> str:
    ratio = max(row["ratio"] for row in rows)
    size = max(row["bytes"]["planar"] for row in rows)
    return page(
        "## Cost\n\nWhole calls, sigma 8, at one megapixel: median times in ms, steps, and the "
        "peak of memory without the output in bytes per pixel, each of the constant and the "
        "planar model.",
        table(
            rows,
            "photograph | {photo}; input | {input}; vertices | {vertices:,}",
            "ms | {times[constant]:ms}; planar | {times[planar]:ms}; ratio | {ratio:.1f}",
            "steps | {steps[constant]}; planar | {steps[planar]}",
            "bytes | {bytes[constant]:.0f}; planar | {bytes[planar]:.0f}",
            OTHERS,
        ),
        bullets(
            "Largest of all rows:",
            [
                f"time of the planar model over that of the constant one: {at_most(ratio, SLOWER)}",
                f"bytes per pixel of the planar model: {at_most(size, BYTES, '.0f')}",
            ],
        ),
    )
