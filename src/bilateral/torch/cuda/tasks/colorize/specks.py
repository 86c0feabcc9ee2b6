"""Colour specks on a CUDA device: `tasks.colorize.surroundings` for tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from bilateral.backends.cuda.colorize.specks import Rules, Specks, vertex_kinds
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.splat import splat
from bilateral.backends.cuda.labels.regions import find_regions
from bilateral.backends.cuda.solve.components import with_data
from bilateral.tasks.colorize import policy
from bilateral.torch import handles
from bilateral.torch.cuda.batch_grid import build_batch_grid
from bilateral.torch.cuda.operators import system_inputs
from bilateral.torch.cuda.recording_cache import ReplayedSolve
from bilateral.torch.cuda.system import System
from bilateral.torch.options import LayerOptions

_ROUNDS = 6
"""Rounds of filling before the host asks whether all specks have a colour. Most need two."""


def recolor(
    solved: Tensor,
    handle: Tensor,
    inputs: tuple[Tensor, Tensor, Tensor, Tensor],
    options: LayerOptions,
    cell: float,
) -> Tensor:
    """Return the chroma (2, H, W) with the specks coloured.

    Parameters
    ----------
    solved : (1, 2, H, W) tensor
        The result of the solve with this handle.
    handle : tensor
    inputs : tuple of tensors
        Reference, target, confidence and smoothness of the solve.
    options : LayerOptions
    cell : float
        Size of a grid cell in pixels.
    """
    reference = inputs[0]
    rules = Rules(
        policy.few_pixels(cell),
        cell * cell,
        policy.small_region(cell),
        policy.VISIBLE,
        policy.SIGMA,
        policy.MAX_LEVEL,
        policy.LEAST_MASS,
    )
    levels = reference[0, 0]
    clipped = levels.clamp(0, policy.MAX_LEVEL).float()
    regions = find_regions(clipped, policy.SAME_LUMA)
    chroma = solved[0].permute(1, 2, 0).contiguous()
    with _grid_of(handle, inputs, options) as (grid, weight, connected):
        kinds = vertex_kinds(grid, weight, connected, options.grid.blur, rules)
        specks = Specks(
            kinds, grid.parent, regions.root.flatten(), regions.size, chroma, clipped, rules
        )
    most = max(levels.shape)
    for _ in range(0, most, _ROUNDS):
        before, after = specks.fill(_ROUNDS)[-1].tolist()
        if after == 0 or before == after:
            break
    return specks.result()


@contextmanager
def _grid_of(
    handle: Tensor, inputs: tuple[Tensor, Tensor, Tensor, Tensor], options: LayerOptions
) -> Iterator[tuple[Grid, Tensor, Tensor | None]]:
    """Return the grid of a solve, the weight of each vertex, and which are connected to weights.

    The latter is None if all are.
    """
    reference, _, confidence, _ = inputs
    (found,) = handles.find(handle) or [None]
    system: System | None = found if isinstance(found, System) else None
    if isinstance(found, ReplayedSolve):
        with found.recording(system_inputs(*inputs)) as recording:
            if recording is not None:
                system = recording.system
                yield system.grid, system.weight, system.with_data
                return
    if system is not None:
        yield system.grid, system.weight, system.with_data
        return
    grid = build_batch_grid(reference, options).grid
    weight = splat(grid, confidence.reshape(-1, 1).to(reference.dtype))[:, 0].contiguous()
    yield grid, weight, with_data(grid, weight)
