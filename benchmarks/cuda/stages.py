"""Time the stages of one solve on a device."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.timing import Timing
from benchmarks.cuda.events import timed
from benchmarks.cuda.floors import Sizes
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Problem
from bilateral import color
from bilateral.backends.cuda.grid import bistochastize, pyramid_transfer
from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.grid.grid import assign_pixels
from bilateral.backends.cuda.grid.keys import find_keys
from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.grid.neighbours import find_neighbours
from bilateral.backends.cuda.grid.order import sort_vertices
from bilateral.backends.cuda.grid.pyramid import build_pyramid
from bilateral.backends.cuda.grid.reference import make_binning
from bilateral.backends.cuda.solve.input_stats import compute_input_stats
from bilateral.backends.cuda.solve.iteration import Iteration
from bilateral.backends.cuda.solve.preconditioner import Preconditioner
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.numerics.policy import EDGE_GUARD, LOWEST_EIGENVALUE
from bilateral.torch.cuda.batch_grid import build_batch_grid
from bilateral.torch.cuda.system import count_loose, pcg_options
from bilateral.torch.options import LayerOptions

SIGMA, _HIGHEST = 8.0, 255.0


class Solve:
    """The stages of a solve, and their inputs, computed beforehand.

    As in CUDA graphs, there is room for more vertices than needed, and no stage waits for the host.
    """

    def __init__(self, problem: Problem, where: torch.device) -> None:
        pixels = torch.tensor(problem.reference).permute(2, 0, 1)[None]
        self._reference = pixels.contiguous().to(where)
        self._values = torch.from_numpy(problem.target).reshape(-1, 1).to(where)
        self._weights = torch.from_numpy(problem.confidence).reshape(-1, 1).to(where)
        self._smoothness = torch.tensor(SMOOTHNESS, dtype=torch.float64, device=where)
        cells = GridOptions(SIGMA, SIGMA, SIGMA, (2.0, 1.0, 0.125), None)
        self._options = LayerOptions(cells, SolveOptions(0.0, STEPS, "pyramid"))
        found = build_batch_grid(self._reference, self._options).grid.rooms
        self._rooms = tuple(n + n // 4 + 256 for n in found)
        self._space = build_batch_grid(self._reference, self._options, self._rooms)
        self._grid = self._space.grid
        matrix, offset = color.feature_map(3, _HIGHEST)
        features = matrix.tolist(), offset.tolist(), [SIGMA] * 3
        self._bins = make_binning(*features, _HIGHEST, EDGE_GUARD, where)
        self._n = self.bistochastize()
        self._seen, self._weight, self._b, _ = self.input_stats_and_splat()
        self._start = self.start()
        self._matrix, self._preconditioner = self.precondition()
        self._x = self._start.clone()
        self._run = self.begin()

    @property
    def sizes(self) -> Sizes:
        """Sizes of the data, not of the allocated room."""
        grid, pyramid = self._grid, self._grid.pyramid
        lower, upper = map(int, pyramid.totals)
        codes, words = grid.order.codes, grid.edges.words
        return Sizes(
            pixels=grid.parent.shape[0],
            channels=self._reference.shape[1],
            tiles=grid.tiles.count,
            vertices=int(grid.total),
            edges=sum(int(((words >> e) & 1).sum()) for e in range(grid.edges.directions)),
            code=codes.shape[0] * codes.element_size(),
            coarse=lower + upper,
            above=pyramid.ancestors.shape[0] * lower,
            balance_steps=bistochastize.STEPS[torch.float32],
            steps=STEPS,
        )

    def bistochastize(self) -> Tensor:
        options = self._space.blur, torch.float32, LOWEST_EIGENVALUE
        return bistochastize.bistochastize(self._grid, *options)

    def input_stats_and_splat(self) -> tuple[Any, ...]:
        seen = compute_input_stats(self._values, self._weights, 1)
        weight, b = splatting.splat_weighted(self._grid, self._values, self._weights)
        bare = count_loose(self._grid, weight, self._smoothness)
        return seen, weight, b, bare

    def start(self) -> Tensor:
        return pyramid_transfer.push_pull(self._grid, self._b, self._weight)

    def precondition(self) -> tuple[Laplacian, Preconditioner]:
        matrix = Laplacian(self._grid, self._n, self._space.blur, self._weight, self._smoothness)
        return matrix, Preconditioner(matrix, "pyramid")

    def begin(self) -> Iteration:
        # A tolerance below 0: always as many steps.
        problem = self._matrix, self._preconditioner, self._b, self._x, self._seen.scale
        return Iteration(*problem, None, pcg_options(STEPS, -1.0))

    def begin_again(self) -> Iteration:
        self._x.copy_(self._start)
        self._run = self.begin()
        return self._run

    def step(self) -> None:
        for _ in range(STEPS):
            self._run.step()
        self._run.finish()

    def slice(self) -> Tensor:
        return splatting.slice_(self._grid, self._x)

    @property
    def stages(self) -> dict[str, Callable[[], Any]]:
        """In the order of a solve and of `floors.FLOORS`."""
        grid, bins, rooms = self._grid, self._bins, self._rooms
        keys, order, tiles = grid.tile_keys, grid.order, grid.tiles
        depth = 1 + grid.pyramid.ancestors.shape[0]
        pyramid = order, keys, grid.first_vertex, depth, grid.programs, rooms[1:]
        return {
            "keys of tiles": lambda: find_keys(self._reference, tiles, bins, rooms[0]),
            "order": lambda: sort_vertices(keys, tiles, bins, 1),
            "assignment of pixels": lambda: assign_pixels(
                keys, order, tiles, grid.shape, all_in_tiles=True
            ),
            "neighbours": lambda: find_neighbours(keys, order, tiles, bins),
            "pyramid": lambda: build_pyramid(*pyramid),
            "bistochastization": self.bistochastize,
            "input statistics and splat": self.input_stats_and_splat,
            "start": self.start,
            "preconditioner": self.precondition,
            "first residual": self.begin,
            "steps": self.step,
            "slice": self.slice,
        }


def stages(problem: Problem, replays: int) -> tuple[dict[str, Timing], Sizes]:
    solve = Solve(problem, torch.device("cuda", torch.cuda.current_device()))
    before = {"steps": solve.begin_again}
    times = {name: timed(run, replays, before.get(name)) for name, run in solve.stages.items()}
    return times, solve.sizes
