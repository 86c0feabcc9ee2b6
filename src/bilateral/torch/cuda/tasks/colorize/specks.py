"""Colour specks on a CUDA device: `tasks.colorize.surroundings` for tensors."""

from __future__ import annotations

from torch import Tensor

from bilateral.backends.cuda.colorize.specks import Rules, Specks, Vertices, vertex_kinds
from bilateral.backends.cuda.labels.regions import Regions
from bilateral.tasks.colorize import policy
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.tasks.solves import PhotoSolver

_ROUNDS = 6
"""Rounds of filling before the host asks whether all specks have a colour. Most need two."""

Blur = tuple[float, float, float]


def recolor(
    solved: Tensor,
    solver: PhotoSolver,
    clipped: Tensor,
    regions: Regions,
    blur: Blur,
    cell: float,
) -> Tensor:
    """Return the chroma (2, H, W) with the specks coloured.

    Parameters
    ----------
    solved : (2, H, W) tensor
        The result of the last solve.
    solver : PhotoSolver
    clipped : (H, W) float32 tensor
        Luma in 8-bit grey levels, at most `policy.MAX_LEVEL`.
    regions : Regions
        Of pixels with the same luma.
    blur : tuple of float
        Of the grid.
    cell : float
        Size of a grid cell in pixels.
    """
    rules = Rules(
        policy.few_pixels(cell),
        cell * cell,
        policy.small_region(cell),
        policy.VISIBLE,
        policy.SIGMA,
        policy.MAX_LEVEL,
        policy.LEAST_MASS,
    )
    with solver.system() as system:
        grid = system.grid
        vertices = Vertices(
            grid.mass, grid.edges, grid.total, system.weight, system.with_data, grid.parent
        )
        chroma, counts = _fill(solved, vertices, regions, clipped, blur, rules)
        before, after = counts.tolist()
        if after == 0 or before == after:
            return chroma
        specks = _specks(solved, vertices, regions, clipped, blur, rules)
    for _ in range(0, max(clipped.shape), _ROUNDS):
        before, after = specks.fill(_ROUNDS)[-1].tolist()
        if after == 0 or before == after:
            break
    return specks.result()


@recorded
def _fill(
    solved: Tensor,
    vertices: Vertices,
    regions: Regions,
    clipped: Tensor,
    blur: Blur,
    rules: Rules,
) -> tuple[Tensor, Tensor]:
    """Fill some rounds; also return the unknown pixels before and after the last one."""
    specks = _specks(solved, vertices, regions, clipped, blur, rules)
    counts = specks.fill(_ROUNDS)[-1]
    return specks.result(), counts


def _specks(
    solved: Tensor,
    vertices: Vertices,
    regions: Regions,
    clipped: Tensor,
    blur: Blur,
    rules: Rules,
) -> Specks:
    kinds = vertex_kinds(vertices, blur, rules)
    chroma = solved.permute(1, 2, 0).contiguous()
    root, size = regions.root.flatten(), regions.size
    return Specks(kinds, vertices.parent, root, size, chroma, clipped, rules)
