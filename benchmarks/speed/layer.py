"""Measure the PyTorch layer: backward against forward (section 3), gradients, memory, overhead."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import bilateral
from benchmarks.common import machine
from benchmarks.common.cells import Cell, Results, Setting, Values, per_photograph
from benchmarks.common.machine import Others
from benchmarks.common.photos import Photo, centre
from benchmarks.common.tables import OTHERS, at_most, behind, bullets, page, table
from benchmarks.common.timing import Timing, geometric_mean, stopwatch

try:
    import torch

    import bilateral.torch
    from bilateral.torch import autograd as derivatives
    from bilateral.torch.options import LayerOptions
except ImportError:  # PyTorch is an extra
    torch = None

NAME, TITLE, DATA = "layer", "Backward over forward (section 3)", "hires"
REPEATS, SIDE, NOISE = 15, 1000, 0.1
MEMORY, OVERHEAD, STEPS = "memory", "overhead", (10, 200)
MAPS = ("target", "confidence", "smoothness")
GRADIENTS = ("t", "tc", "tcs")  # of the first, of the first two, of all three maps
SIGMAS = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), 8)
# name, fraction of known pixels, channels, smoothness
SETTINGS = (
    *(("dense", 1.0, channels, 4.0) for channels in (1, 3)),
    *(("sparse", 0.02, 1, smoothness) for smoothness in (4.0, 128.0)),
)


class Case(NamedTuple):
    """Tensors (1, C, H, W): the maps by `MAPS`, and the true map."""

    reference: Any
    maps: tuple[Any, Any, Any]
    truth: Any


def cells(setting: Setting) -> Iterator[Cell]:
    if torch is None:
        return
    yield from per_photograph(measure_photograph, setting, at_most=3)
    if not setting.paper:
        yield Cell(MEMORY, partial(peak_memory, 200 if setting.quick else SIDE))
        yield Cell(OVERHEAD, partial(overhead, 5 if setting.quick else 300))


def measure_photograph(photo: Photo, setting: Setting) -> list[dict[str, Any]]:
    rows = []
    for kind, known, channels, smoothness in SETTINGS:
        case = make_case(photo, known, channels, smoothness)
        name = {"photograph": photo.name, "torch": torch.__version__, "data": kind}
        name |= {"channels": channels, "smoothness": smoothness}
        rows.append(name | cost(case, setting.repeats) | {"error": error(case)})
    return rows


def make_case(photo: Photo, known: float, channels: int, smoothness: float) -> Case:
    """Take a photograph's middle with its own grey values plus noise as the target."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.from_numpy(centre(photo.pixels, SIDE, SIDE)).permute(2, 0, 1)[None]
    truth = (pixels.float().mean(1, keepdim=True) / 255).expand(-1, channels, -1, -1)
    noise = torch.randn(truth.shape, generator=generator)
    confidence = torch.rand(1, 1, *truth.shape[2:], generator=generator) + 0.1
    confidence[torch.rand(confidence.shape, generator=generator) > known] = 0
    target = (truth + NOISE * noise).contiguous(memory_format=torch.channels_last)
    return Case(pixels, (target, confidence, torch.tensor(smoothness)), truth)


def cost(case: Case, repeats: int) -> dict[str, Any]:
    """Time the backward in turns with the forward, by CPU time, on an existing grid."""
    # One thread, so that other work matters least: threads speed up both passes alike.
    threads = bilateral.get_num_threads(), torch.get_num_threads()
    bilateral.set_num_threads(1)
    torch.set_num_threads(1)
    options = LayerOptions.checked({**SIGMAS, "blur": "paper", "reference_max": None}, 3)
    _, grid = derivatives.solve(case.reference, *case.maps, None, options)
    seconds = {name: list[float]() for of in GRADIENTS for name in (of, f"forward_{of}")}
    others = Others()
    for _ in range(repeats + 1):  # one warm-up
        for of in GRADIENTS:
            inputs = [value.detach().requires_grad_() for value in case.maps[: len(of)]]
            tensors = *inputs, *case.maps[len(of) :]
            began = time.process_time()
            y, _ = derivatives.solve(case.reference, *tensors, grid, options)
            seconds[f"forward_{of}"].append(time.process_time() - began)
            h = (y.detach() - case.truth) / y.numel()
            began = time.process_time()
            torch.autograd.grad(y, inputs, h)
            seconds[of].append(time.process_time() - began)
    bilateral.set_num_threads(threads[0])
    torch.set_num_threads(threads[1])
    times = {name: Timing.of(values[1:]) for name, values in seconds.items()}
    # A forward whose confidence needs a gradient solves more accurately: each ratio has its own.
    ratios = {f"ratio_{of}": times[of].median / times[f"forward_{of}"].median for of in GRADIENTS}
    return {**times, **ratios, "other_work": others.cores()}


def error(case: Case) -> dict[str, float]:
    """Errors of the gradients for one loss gradient, in percent of their norms."""

    def solve(dtype: Any, tolerance: float) -> tuple[Any, list[Any]]:
        inputs = [value.to(dtype).clone().requires_grad_() for value in case.maps]
        t, c, s = inputs
        options = {"tolerance": tolerance, "max_iterations": 300}
        return bilateral.torch.solve(case.reference, t, c, smoothness=s, **options), inputs

    exact, inputs = solve(torch.float64, 1e-9)
    h = (exact.detach() - case.truth) / exact.numel()
    expected = torch.autograd.grad(exact, inputs, h)
    usual, inputs = solve(torch.float32, 1e-3)
    gradients = torch.autograd.grad(usual, inputs, h.float())
    pairs = zip(MAPS, gradients, expected, strict=True)
    return {name: 100 * float((one - other).norm() / other.norm()) for name, one, other in pairs}


def overhead(repeats: int) -> dict[str, float]:
    """Time a call on a small image for arrays and for tensors, in turns: the least seconds."""
    rng = np.random.default_rng(0)
    pixels, values = rng.random((32, 48, 3), np.float32), rng.random((32, 48), np.float32)
    photo, target = torch.from_numpy(pixels).permute(2, 0, 1), torch.from_numpy(values)[None]
    learned = target.clone().requires_grad_()
    calls = {
        "arrays": stopwatch(bilateral.solve, pixels, values),
        "tensors": stopwatch(bilateral.torch.solve, photo, target),
        "tensors_with_grad": stopwatch(bilateral.torch.solve, photo, learned),
    }
    rounds = [{name: call() for name, call in calls.items()} for _ in range(repeats)]
    return {name: min(seconds[name] for seconds in rounds) for name in calls}


def peak_memory(side: int) -> list[dict[str, Any]]:
    runs = {steps: machine.in_fresh_process(_train, side, steps) for steps in STEPS}
    return [{"steps": steps, "bytes": count} for steps, count in runs.items()]


def _train(side: int, steps: int) -> int:
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(1, 3, side // 16, side // 16, generator=generator)
    photo = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear")
    target, confidence = (torch.rand(1, 1, side, side, generator=generator) for _ in range(2))

    def train(size: int, steps: int) -> None:
        t, c = (x[..., :size, :size].clone().requires_grad_() for x in (target, confidence))
        options = {"tolerance": 0.0, "max_iterations": steps}
        y = bilateral.torch.solve(photo[..., :size, :size], t, c, **options)
        y.square().sum().backward()

    train(32, 2)
    return machine.growth(lambda: train(side, steps))[0]


def _rows(values: Values) -> list[dict[str, Any]]:
    return [row for name in values if name not in (MEMORY, OVERHEAD) for row in values[name]]


def summary(values: Values, _: Setting) -> Results:
    names = ("photograph", "torch", "data", "channels", "smoothness")
    rows = [
        {
            **{name: row[name] for name in names},
            **{"forward_ms": 1e3 * row["forward_tc"].median, "ratio": row["ratio_tc"]},
            "backward_ms": 1e3 * row["tc"].median,
            "error_percent": max(row["error"].values()),
        }
        for row in _rows(values)
    ]
    if not rows:
        return {"rows": [], "ratio": None}
    return {
        "rows": rows,
        "ratio": geometric_mean([row["ratio"] for row in rows]),
        "largest_ratio": max(row["ratio"] for row in rows),
        "error_percent": max(row["error_percent"] for row in rows),
    }


def as_text(results: Results) -> str:
    if not results["rows"]:
        return "Skipped: PyTorch is not installed (`pip install '.[torch]'`)."
    worst = results["largest_ratio"]
    loss = (
        f"our largest ratio is {worst:.2f}: the backward pass also multiplies at every pixel for "
        "both gradients, while the forward pass has its grid already"
    )
    return page(
        f"CPU time of one thread by PyTorch {results['rows'][0]['torch']}, on an existing grid; "
        "gradients of target and confidence, and the largest error of one, in % of its norm.",
        table(
            results["rows"],
            "photograph | {photograph}",
            "data | {data}, {channels} ch., smoothness {smoothness:g}",
            "forward, ms | {forward_ms:.1f}; backward, ms | {backward_ms:.1f}",
            "ratio | {ratio:.2f}; error, % | {error_percent:.2f}",
        ),
        f'Geometric mean {results["ratio"]:.2f}. The paper: "no more costly than computing '
        'the forward pass".',
        behind([loss] if worst > 1 else [], "No case is behind."),
    )


def details(values: Values) -> str:
    rows = _rows(values)
    if not rows:
        return ""
    error = max(max(row["error"].values()) for row in rows)
    few, many = (row["bytes"] for row in values[MEMORY])
    calls = {name: 1e6 * seconds for name, seconds in values[OVERHEAD].items()}
    more = calls["tensors_with_grad"] - calls["arrays"]
    lines = [
        "backward time / forward time, to target and confidence: "
        f"{at_most(max(row['ratio_tc'] for row in rows), 1.2)}",
        f"error of a gradient at the tolerance 1e-3, % of its norm: {at_most(error, 1.0)}",
        f"peak memory of forward and backward, {few / 1e6:.1f} MB for {STEPS[0]} steps and "
        f"{many / 1e6:.1f} MB for {STEPS[1]}, growth in %: "
        f"{at_most(100 * (many / few - 1), 2.0, '.1f')}",
        f"a call on 48 x 32 pixels: arrays {calls['arrays']:.0f} microseconds, tensors "
        f"{calls['tensors']:.0f}, with a graph more than arrays: {at_most(more, 100.0, '.0f')}",
    ]
    return page(
        "## CPU time of one thread, on an existing grid: backward in ms and over the forward; and "
        "the error of each gradient in %",
        table(
            rows,
            "case | {photograph}, {data}, {channels} ch., {smoothness:g}",
            "forward, ms | {forward_t}; backward to target | {t:ms}: {ratio_t:.2f}",
            "and confidence | {tc:ms}: {ratio_tc:.2f}; and smoothness | {tcs:ms}: {ratio_tcs:.2f}",
            *(f"{name} | {{error[{name}]:.2f}}" for name in MAPS),
            OTHERS,
        ),
        bullets("## Targets", lines),
    )
