"""Time the supplement's robust rounds and low-rank solves against plain ones, and check both."""

from collections.abc import Iterator
from functools import partial

from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.tables import OTHERS, at_most, table
from benchmarks.quality import lowrank, robust

TITLE = "The supplement's parts"
REPEATS = 7
ROUNDS_IN_SOLVES = 8.0
"""Target: robust rounds in single solves."""


def cells(setting: Setting) -> Iterator[Cell]:
    root = setting.data.root
    pixels, shape = (40_000, (160, 240)) if setting.quick else (1_000_000, (500, 741))
    scenes = [] if root is None else list(robust.read_scenes(root))
    for scene in scenes or [robust.made_scene(*shape)]:
        resized = robust.resized(scene, pixels)
        for sigma, smoothness in robust.SETTINGS:
            name = f"{scene.name}, {sigma}, {smoothness:g}"
            cost = partial(robust.cost, resized, sigma, smoothness, setting.repeats)
            yield Cell(f"{name}: cost", cost)
            yield Cell(f"{name}: gain", partial(robust.gain, scene, sigma, smoothness))
    if root is not None and list(lowrank.read_images(root)):
        yield from lowrank.cells(setting)


def summary(values: Values, _: Setting) -> Results:
    return {part: _part(values, part) for part in ("cost", "gain")}


def _part(values: Values, part: str) -> list[Results]:
    return [value for name, value in values.items() if name.endswith(f": {part}")]


def as_text(results: Results) -> str:
    errors = "{{{0}[bad_1]:5.2f}} {{{0}[mean]:5.2f}} {{{0}[rms]:5.2f}}"
    kinds = ("input", "least_squares", "robust", "exact_rounds")
    sigmas = "sigmas | {sigma}, {smoothness:g}"
    return f"## What {robust.ROUNDS} robust rounds gain: bad-1 %, mean and RMS error\n\n" + table(
        results["gain"],
        "scene | {scene}",
        sigmas,
        *(f"{kind.replace('_', ' ')} | {errors.format(kind)}" for kind in kinds),
    )


def details(values: Values) -> str:
    """Times with their spread, and low rank where there are class scores."""
    rows = _part(values, "cost")
    worst = max(row["rounds_in_solves"] for row in rows)
    parts = [
        f"## {robust.ROUNDS} robust rounds in single solves",
        table(
            rows,
            "scene | {scene}; sigmas | {sigma}, {smoothness:g}; vertices | {vertices:,}",
            "rounds, ms | {rounds}; solve, ms | {solve}; ratio | {rounds_in_solves:.1f}",
            "call, ms | {one_call:ms}: {rounds_in_calls:.1f}",
            OTHERS,
        ),
        f"Largest ratio: {at_most(worst, ROUNDS_IN_SOLVES, '.1f')}.",
    ]
    images = {name: value for name, value in values.items() if "rank" in value}
    return "\n\n".join([*parts, lowrank.details(images)] if images else parts)
