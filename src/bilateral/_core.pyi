"""The C++ core. Use it through `bilateral.backends.cpu`."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


class Grid:
    """The simplified bilateral grid of a reference."""

    def coordinates(self) -> list[int]:
        """
        Return the cell of each vertex: x, y, t of a video or volume, then the features.
        """

    @property
    def build_seconds(self) -> tuple[float, float, float]:
        """
        Seconds for vertices and edges, for the pyramid, and for the bistochastization.
        """

    @overload
    def splat(self, pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def splat(self, pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write S pixels."""

    @overload
    def slice(self, vertices: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def slice(self, vertices: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write S^T vertices."""

    @overload
    def blur(self, vertices: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def blur(self, vertices: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write B-bar vertices."""

    @overload
    def push_pull(self, vertices: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def push_pull(self, vertices: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write H vertices, the pyramid's sum of means."""

    @overload
    def slice_gradients(self, z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], extra: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, of_target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, of_confidence: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, threads: int) -> None: ...

    @overload
    def slice_gradients(self, z: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], extra: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, of_target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, of_confidence: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, threads: int) -> None:
        """
        Write the gradients c z of the target and z (t - y) + extra of the confidence.
        """

    @overload
    def smoothness_product(self, x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int) -> float: ...

    @overload
    def smoothness_product(self, x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], threads: int) -> float:
        """Return x^T (D_m - D_n B-bar D_n) y."""

    @overload
    def rms(self, vertices: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None: ...

    @overload
    def rms(self, vertices: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
        """Write the root mean square over the pixels of each channel."""

    @overload
    def splat_target(self, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> tuple[int, list[float], list[float], int | None]: ...

    @overload
    def splat_target(self, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> tuple[int, list[float], list[float], int | None]:
        """
        Write S c and S (c t). Returns the number of known pixels, the lowest and highest value per channel, and the first pixel with an invalid confidence.
        """

    @overload
    def pyramid_start(self, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def pyramid_start(self, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write the paper's hierarchical start."""

    @overload
    def flat_start(self, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def flat_start(self, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """
        Write the mean of each vertex, or the hierarchical start where there is no data.
        """

    @overload
    def draw_probes(self, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], smoothness: float, seed: int, b: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def draw_probes(self, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], smoothness: float, seed: int, b: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write random right-hand sides with the covariance A."""

    @overload
    def with_data(self, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')]) -> None: ...

    @overload
    def with_data(self, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')]) -> None:
        """
        Write whether each vertex is connected to a vertex with a weight above 0.
        """

    @overload
    def count_loose(self, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], least: float, threads: int) -> float: ...

    @overload
    def count_loose(self, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], least: float, threads: int) -> float:
        """
        Return the number of pixels at vertices that have a weight below `least` per pixel, as all their neighbours do.
        """

    def state(self, threads: int) -> tuple[int, list[float], list[int], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any]]:
        """Return the arguments of grid_from_state up to `keys`."""

    @overload
    def nested_start(self, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], smoothness: float, x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def nested_start(self, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], smoothness: float, x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """
        Write the solution of full multigrid above the grid, 0 where there is no data.
        """

@overload
def build_grid(pixels: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_space: Sequence[float], edge_guard: float, blur: Sequence[float], lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, threads: int) -> tuple[Grid, int, Annotated[NDArray[numpy.float32], dict(shape=(None,), writable=False)]]: ...

@overload
def build_grid(pixels: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_space: Sequence[float], edge_guard: float, blur: Sequence[float], lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, threads: int) -> tuple[Grid, int, Annotated[NDArray[numpy.float32], dict(shape=(None,), writable=False)]]: ...

@overload
def build_grid(pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_space: Sequence[float], edge_guard: float, blur: Sequence[float], lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, threads: int) -> tuple[Grid, int, Annotated[NDArray[numpy.float32], dict(shape=(None,), writable=False)]]: ...

@overload
def build_grid(pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_space: Sequence[float], edge_guard: float, blur: Sequence[float], lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, threads: int) -> tuple[Grid, int, Annotated[NDArray[numpy.float32], dict(shape=(None,), writable=False)]]:
    """
    Build and bistochastize a grid. Returns the grid, its number of vertices and its mass.
    """

@overload
def frame_change(before: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], scale: Sequence[float], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def frame_change(before: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], scale: Sequence[float], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def frame_change(before: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], scale: Sequence[float], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def frame_change(before: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], scale: Sequence[float], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """
    Write a weight per pixel: 1 for equal values, 0 from a change of 3 / scale on.
    """

def grid_from_state(space_dimensions: int, blur: Sequence[float], key_bits: Sequence[int], x_cell: Sequence[int], y_cell: Sequence[int], t_cell: Sequence[int], last_rank: numpy.typing.NDArray[Any], rank: numpy.typing.NDArray[Any], keys: numpy.typing.NDArray[Any], lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, threads: int) -> tuple[Grid, int, numpy.typing.NDArray[numpy.float32]]:
    """
    Build a grid from its state; raise ValueError if the state is damaged. Returns the grid, its number of vertices and its mass.
    """

class Block:
    """The vertices of a rectangle of whole tiles."""

    @property
    def n_vertices(self) -> int: ...

    @property
    def mass(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), writable=False)]:
        """Number of pixels of each vertex."""

    def vertices(self) -> tuple[list[int], list[int], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any]]:
        """
        Return the bits and the lowest cell of each feature in a key, the number of vertices of each tile, and the key of each vertex.
        """

    def state(self, threads: int) -> tuple[list[int], list[int], list[int], list[int], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any], numpy.typing.NDArray[Any]]:
        """Return the arguments of block_from_state."""

    @overload
    def splat(self, pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def splat(self, pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write S pixels."""

    @overload
    def splat_target(self, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> tuple[int, list[float], list[float], int | None]: ...

    @overload
    def splat_target(self, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> tuple[int, list[float], list[float], int | None]:
        """
        Write S c and S (c t) in float64. Returns the same as Grid.splat_target.
        """

    @overload
    def slice(self, vertices: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def slice(self, vertices: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write S^T vertices."""

@overload
def build_block(pixels: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], y: int, x: int, height: int, width: int, matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_xy: float, edge_guard: float, threads: int) -> Block: ...

@overload
def build_block(pixels: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], y: int, x: int, height: int, width: int, matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_xy: float, edge_guard: float, threads: int) -> Block: ...

@overload
def build_block(pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], y: int, x: int, height: int, width: int, matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_xy: float, edge_guard: float, threads: int) -> Block: ...

@overload
def build_block(pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], y: int, x: int, height: int, width: int, matrix: Sequence[Sequence[float]], offset: Sequence[float], sigmas: Sequence[float], nominal_max: float | None, sigma_xy: float, edge_guard: float, threads: int) -> Block:
    """Find the vertices of a block of whole tiles at (y, x)."""

def block_from_state(key_bits: Sequence[int], key_low: Sequence[int], x_cell: Sequence[int], y_cell: Sequence[int], last_rank: numpy.typing.NDArray[Any], rank: numpy.typing.NDArray[Any], keys: numpy.typing.NDArray[Any], threads: int) -> Block:
    """
    Build a block from its state; raise ValueError if the state is damaged.
    """

def repack_keys(keys: numpy.typing.NDArray[Any], bits: Sequence[int], low: Sequence[int], new_bits: Sequence[int], new_low: Sequence[int]) -> numpy.typing.NDArray[Any]:
    """Return keys with fields of other sizes and other lowest cells."""

def join_blocks(counts: numpy.typing.NDArray[numpy.uint32], keys: numpy.typing.NDArray[Any], mass: numpy.typing.NDArray[numpy.float32], height: int, width: int, sigma_xy: float, edge_guard: float, key_bits: Sequence[int], blur: Sequence[float], lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, threads: int) -> tuple[Grid, int, numpy.typing.NDArray[numpy.float32]]:
    """
    Build the grid of an image from the vertices of its tiles. It has no pixels.
    """

def cell_starts(length: int, sigma: float, edge_guard: float) -> list[int]:
    """Return the first pixel of each cell of an axis, and the length."""

class Solver:
    """Memory and matrices that the solves on one grid share."""

    def with_data(self, out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')]) -> None:
        """Write whether each vertex was connected to data in the last solve."""

@overload
def solve(solver: Solver | None, grid: Grid, preconditioner: str, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], scale: Sequence[float], fill: bool, smoothness: float, min_iterations: int, max_iterations: int, tolerance: float, movement_fraction: float, step_noise: float, error_window: int, callback: Callable[[int, float], object] | None, threads: int) -> tuple[Solver, list[float], bool, bool, float]: ...

@overload
def solve(solver: Solver | None, grid: Grid, preconditioner: str, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], scale: Sequence[float], fill: bool, smoothness: float, min_iterations: int, max_iterations: int, tolerance: float, movement_fraction: float, step_noise: float, error_window: int, callback: Callable[[int, float], object] | None, threads: int) -> tuple[Solver, list[float], bool, bool, float]:
    """
    Improve x in place by PCG, with a new solver if there is none. Returns the solver, the error estimate after each step, whether all channels converged, whether one diverged, and how far x moved.
    """

class Planes:
    """The planar model of a grid."""

    def __init__(self, grid: object, cells_per_pixel: Sequence[float], threads: int) -> None: ...

    def centres(self, out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
        """Write the centre of each vertex: x, y and t, in cells."""

    @overload
    def splat(self, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, centred: bool, moments: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> tuple[int, float, list[float], list[float], list[float], int | None]: ...

    @overload
    def splat(self, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], confidence: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, centred: bool, moments: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> tuple[int, float, list[float], list[float], list[float], int | None]:
        """
        Write the moments of a target and its confidence. Returns the number of known pixels, their confidence, lowest and highest values, the origin that was subtracted from the values, and the first pixel with an invalid confidence.
        """

    @overload
    def slice(self, planes: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], origin: Sequence[float], low: Sequence[float], high: Sequence[float], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def slice(self, planes: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], origin: Sequence[float], low: Sequence[float], high: Sequence[float], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Evaluate planes at the pixels, add an origin, and clamp."""

    @overload
    def fit(self, moments: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], ridge: float, x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

    @overload
    def fit(self, moments: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ridge: float, x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
        """Fit the plane of each vertex to its own data."""

    @overload
    def fill_transposed(self, active: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], planes: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

    @overload
    def fill_transposed(self, active: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], planes: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
        """
        Add the transpose of the fill of parts without data to the vertices with data.
        """

    @overload
    def draw_probes(self, moments: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], smoothness: float, slope_smoothness: float, slope_ridge: float, seed: int, b: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

    @overload
    def draw_probes(self, moments: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], smoothness: float, slope_smoothness: float, slope_ridge: float, seed: int, b: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Draw right-hand sides whose covariance is the planar matrix."""

class PlaneSolver32:
    """Memory and matrices for planar solves on one grid."""

    def __init__(self, planes: object, slope_smoothness: float, slope_ridge: float, all_levels: bool, threads: int) -> None: ...

    def solve(self, moments: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], scale: Sequence[float], nested: bool, smoothness: float, min_iterations: int, max_iterations: int, tolerance: float, movement_fraction: float, step_noise: float, error_window: int, callback: Callable[[int, float], object] | None) -> tuple[list[float], bool, bool, float]:
        """
        Improve x in place by PCG, from the nested start if wanted. Returns the error estimate after each step, whether all channels converged, whether one diverged, and how far x moved.
        """

    def with_data(self, out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')]) -> None:
        """Write whether each vertex was connected to data in the last solve."""

class PlaneSolver64:
    """Memory and matrices for planar solves on one grid."""

    def __init__(self, planes: object, slope_smoothness: float, slope_ridge: float, all_levels: bool, threads: int) -> None: ...

    def solve(self, moments: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], scale: Sequence[float], nested: bool, smoothness: float, min_iterations: int, max_iterations: int, tolerance: float, movement_fraction: float, step_noise: float, error_window: int, callback: Callable[[int, float], object] | None) -> tuple[list[float], bool, bool, float]:
        """
        Improve x in place by PCG, from the nested start if wanted. Returns the error estimate after each step, whether all channels converged, whether one diverged, and how far x moved.
        """

    def with_data(self, out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')]) -> None:
        """Write whether each vertex was connected to data in the last solve."""

class Loss:
    """The weight rho'(e) / e of a robust loss, as a function of e^2."""

    @staticmethod
    def power(gain: float, rate: float, exponent: float) -> Loss:
        """gain (1 + rate e^2)^exponent"""

    @staticmethod
    def exponential(gain: float, rate: float) -> Loss:
        """gain exp(-rate e^2)"""

    @staticmethod
    def huber(gain: float, rate: float) -> Loss:
        """gain min(1, 1 / sqrt(rate e^2))"""

class Samples32:
    """The known pixels of a target, in the order of a robust splat."""

    @overload
    def __init__(self, grid: Grid, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int) -> None:
        """Collect the known pixels of a target."""

    @overload
    def __init__(self, block: Block, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int) -> None:
        """Collect the known pixels of a block."""

    @property
    def known(self) -> int:
        """Number of known pixels."""

    @property
    def size(self) -> list[float]:
        """Largest magnitude of each channel."""

    def splat(self, loss: Loss, y: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
        """Write S c and S (c t) with the weights c of a loss."""

class Samples64:
    """The known pixels of a target, in the order of a robust splat."""

    @overload
    def __init__(self, grid: Grid, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], threads: int) -> None:
        """Collect the known pixels of a target."""

    @overload
    def __init__(self, block: Block, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], threads: int) -> None:
        """Collect the known pixels of a block."""

    @property
    def known(self) -> int:
        """Number of known pixels."""

    @property
    def size(self) -> list[float]:
        """Largest magnitude of each channel."""

    def splat(self, loss: Loss, y: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
        """Write S c and S (c t) with the weights c of a loss."""

@overload
def covariance(weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], covariance: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def covariance(weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], covariance: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
    """
    Write the weighted means of the channels and the lower triangle of their covariance.
    """

@overload
def project(weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], reduced: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def project(weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weighted: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], reduced: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
    """Write basis (weighted - weight mean)."""

@overload
def expand(reduced: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def expand(reduced: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], full: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
    """Write basis^T reduced + mean."""

class DomainTransform32:
    """The domain transform along one reference."""

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform32: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform32: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform32: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform32:
        """Compute the weights between neighbouring pixels."""

    @overload
    def filter(self, image: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], mass: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, iterations: int, out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> tuple[bool, bool]: ...

    @overload
    def filter(self, image: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], mass: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, iterations: int, out: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu')], threads: int) -> tuple[bool, bool]: ...

    @overload
    def filter(self, image: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], mass: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, iterations: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> tuple[bool, bool]:
        """
        Filter an image. Returns whether a pixel has data, and whether a value is too large.
        """

    def filter_pass(self, rows: bool, pass_: int, values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], mass: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, threads: int) -> None:
        """Filter the rows or the columns of an image in place, as one pass does."""

class DomainTransform64:
    """The domain transform along one reference."""

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform64: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform64: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform64: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], step: float, level: float, threads: int) -> DomainTransform64:
        """Compute the weights between neighbouring pixels."""

    def filter(self, image: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], mass: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, iterations: int, out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> tuple[bool, bool]:
        """
        Filter an image. Returns whether a pixel has data, and whether a value is too large.
        """

    def filter_pass(self, rows: bool, pass_: int, values: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], mass: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, threads: int) -> None:
        """Filter the rows or the columns of an image in place, as one pass does."""

@overload
def median(image: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], size: int, threads: int) -> None: ...

@overload
def median(image: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu')], size: int, threads: int) -> None: ...

@overload
def median(image: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], size: int, threads: int) -> None: ...

@overload
def median(image: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], size: int, threads: int) -> None:
    """Write the median over size x size pixels."""

def color_cells(image: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], weights: Sequence[Sequence[float]], shift: Sequence[float], margin: Sequence[float], gray: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], near: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')]) -> None:
    """
    Write the cells of 8-bit colours, and whether a colour is near the border of a cell.
    """

class PixelGraph32:
    """The graph of the pixels of a reference."""

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph32: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph32: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph32: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph32:
        """Join each pixel to its eight neighbours."""

    def polish(self, z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], anchor: float, target: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, low: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, low_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scale: float, rounds: int, steps: int, threads: int) -> None:
        """Smooth z in place, near to a target and to block means."""

@overload
def block_means(pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], means: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def block_means(pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], means: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
    """Write the means of the pixels over blocks."""

@overload
def spread_blocks(values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def spread_blocks(values: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
    """Write the adjoint of `block_means`."""

class PixelGraph64:
    """The graph of the pixels of a reference."""

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph64: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph64: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph64: ...

    @overload
    @staticmethod
    def of(reference: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], smoothness: float, sigma: float, threads: int) -> PixelGraph64:
        """Join each pixel to its eight neighbours."""

    def polish(self, z: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], anchor: float, target: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, low: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, low_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, scale: float, rounds: int, steps: int, threads: int) -> None:
        """Smooth z in place, near to a target and to block means."""

def label_depth(labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], radius: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """
    Write the distance to the nearest outline, relative to the largest one nearby.
    """

def majority(labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], classes: int, radius: int, out: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], threads: int) -> None:
    """
    Write the label that fills more than half of the window around each pixel.
    """

def find_regions(values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], mask: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], tolerance: float, labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')]) -> int:
    """Label the connected regions of a mask. Returns their number."""

def object_regions(values: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], threshold: float, labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')]) -> list[int]:
    """
    Label the connected regions of the mask of values above a threshold, with its holes filled. Returns the number of pixels of each label.
    """

def match_blocks(left: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], disparities: int, radius: int, margin: float, out: Sequence[Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]], threads: int) -> None:
    """
    Match blocks of two views; fills the lower, upper and best disparity, and the right best.
    """

def visible(claim: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], surface: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], trusted: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], tolerance: float, out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')], threads: int) -> None:
    """Write whether the right view sees the pixels of the left view."""

def defocus(image: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], layers: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], radii: Sequence[float], blades: int, rotation: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Blur an image by layers, each over the layers behind it."""

@overload
def pack_photo(pixels: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], scale: float, out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def pack_photo(pixels: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], scale: float, out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def pack_photo(pixels: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], scale: float, out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def pack_photo(pixels: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], scale: float, out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> None:
    """Write red, green, blue and luma as bytes."""

def photo_luma(photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None:
    """Write the luma of a packed photograph."""

def halve(image: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Write the image at half its size."""

def camera_motion(before: Sequence[Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]], now: Sequence[Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]], finest_step: int, depth: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], unit: float, start: Sequence[float], threads: int) -> tuple[list[float], float, float, float, float]:
    """
    Return the parameters of the flow, gain, offset, the median residual and the longest flow.
    """

def warp_past(past: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], depth: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], theta: Sequence[float], unit: float, noise: Sequence[float], gain: float, offset: float, moved: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], moved_count: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], moved_photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], speed: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Move the past to the present along the flow."""

def depth_change(z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], noise: Sequence[float], moving: bool) -> tuple[list[float], float, int]:
    """
    Return the change of depth, the factor of noise in time and the number of samples.
    """

def compare_past(measured: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], before: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], photo_before: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], change: Sequence[float], noise: Sequence[float], photo_tolerance: float, photo_shift: float, depth_tolerance: float, past: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], steadiness: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], difference: Annotated[NDArray[numpy.int16], dict(order='C', device='cpu')], threads: int) -> None:
    """Find the steady pixels."""

def average_past(x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], past: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], steadiness: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], difference: Annotated[NDArray[numpy.int16], dict(order='C', device='cpu', writable=False)], noise: Sequence[float], radius: int, least_shift: float, most_shift: float, same: float, most: int, settled: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_count: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> None:
    """Average the present with the steady past."""

def calm(x: Sequence[Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]], speed: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], noise: Sequence[float], gain: float, most: float, fast: float, change: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Move each pixel towards the value that its last two values lead to."""

def find_doubt(z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], jump: tuple[float, float, float], out: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu')], threads: int) -> None:
    """Write whether each pixel of a depth map lies on no surface."""

def surface_sizes(z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], doubt: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], jump: tuple[float, float, float], out: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')]) -> None:
    """Write the number of pixels of each pixel's surface."""

def grow_surfaces(kept: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], measured: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], jump: tuple[float, float, float], inverse: bool, growth: tuple[float, float, float], x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Bring the fillings of holes to the surfaces around them, in place."""

def smooth_depth(kept: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], noise: tuple[float, float, float], scale: float, limit: float, x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Reduce the noise of a depth map, in place."""

def shrink_depth(z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], factor: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Write the data closest to the centres of blocks."""

@overload
def shrink_photo(photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], factor: int, out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def shrink_photo(photo: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], factor: int, out: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def shrink_photo(photo: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], factor: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def shrink_photo(photo: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], factor: int, out: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], threads: int) -> None:
    """Write the means of blocks of a photograph."""

@overload
def expand_depth(coarse: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], coarse_photo: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], factor: int, unit: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def expand_depth(coarse: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], photo: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], coarse_photo: Annotated[NDArray[numpy.uint16], dict(order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], factor: int, unit: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def expand_depth(coarse: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], photo: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], coarse_photo: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], factor: int, unit: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None: ...

@overload
def expand_depth(coarse: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], photo: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], coarse_photo: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.bool_], dict(order='C', device='cpu', writable=False)], factor: int, unit: float, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], threads: int) -> None:
    """Write coarse depths to the pixels without data."""

def interpolate_points(z: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], nearest: Annotated[NDArray[numpy.uint32], dict(order='C', device='cpu')]) -> None:
    """Interpolate linearly between the known pixels of a map."""
