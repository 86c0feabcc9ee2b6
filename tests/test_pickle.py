"""Pickles and copies: same bits, small, independent, and safe if damaged."""

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver, BlockMeans, losses
from bilateral.tasks import Colorizer
from support.strategies import Array, Problem, grid_options, problems, references, seeds, white

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def restored(grid: BilateralGrid, state: dict[str, Any]) -> BilateralGrid:
    """Make a grid of a state, as `pickle.loads` does."""
    new = type(grid).__new__(type(grid))
    new.__setstate__(state)
    return new


def textured(*shape: int) -> Array:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def volume() -> Array:
    return np.random.default_rng(0).normal(size=(4, 12, 14, 2))


# Functions, since nanobind reports objects that live until the interpreter ends as leaks.
GRIDS: dict[str, Callable[[], BilateralGrid]] = {
    "gray": lambda: BilateralGrid(textured(30, 40), sigma_luma=30),
    "colour": lambda: BilateralGrid(textured(30, 40, 3), 5, 40, 40, blur="uniform"),
    "float": lambda: BilateralGrid(textured(30, 40, 3) / 255, 5, 40, 40),
    "video": lambda: BilateralGrid(textured(5, 20, 24), 4, 40, sigma_t=2),
    "features": lambda: BilateralGrid.from_features(volume()[0], (0.5, 2), (3, 5)),
    "volume": lambda: BilateralGrid.from_features(volume(), 0.7, (2, 5, 4)),
    "no features": lambda: BilateralGrid.from_features(np.zeros((9, 11, 0)), (), 2),
    "wide keys": lambda: BilateralGrid(textured(9, 11, 3), 4, 1e-6, 1e-6),
    "wide ranks": lambda: BilateralGrid(textured(40, 40, 3), 40, 1, 1),
    "one pixel": lambda: BilateralGrid(np.zeros((1, 1), np.uint8)),
    "tiny cells": lambda: BilateralGrid(textured(8, 9), 1e-300),
}


# Same bits


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_is_the_same_after_a_round_trip(name: str) -> None:
    grid = GRIDS[name]()
    new = again(grid)
    assert (new.shape, new.n_vertices, repr(new)) == (grid.shape, grid.n_vertices, repr(grid))
    np.testing.assert_array_equal(new.coordinates(), grid.coordinates())
    numbers = np.random.default_rng(1).normal(size=grid.shape)
    vertices = grid.splat(numbers)
    np.testing.assert_array_equal(new.splat(numbers), vertices)
    np.testing.assert_array_equal(new.blur(vertices), grid.blur(vertices))
    numbers[numbers > 0] = np.nan
    numbers.flat[0] = 1
    for tolerance in (1e-3, 1e-8):  # float32 and float64
        solvers = [BilateralSolver(g, tolerance=tolerance) for g in (grid, new)]
        np.testing.assert_array_equal(*(solver.solve(numbers) for solver in solvers))


@given(problems(), st.sampled_from(["multigrid", "pyramid", "jacobi"]))
def test_a_solve_after_a_round_trip_has_the_same_bits(
    problem: Problem, preconditioner: str
) -> None:
    white_ = white(problem.reference)
    grid = BilateralGrid(problem.reference, **problem.options, reference_max=white_)
    solver = BilateralSolver(
        grid, problem.smoothness, preconditioner=preconditioner, max_iterations=200
    )
    arguments = problem.target, problem.confidence
    expected = solver.solve(*arguments)
    new = again(solver)
    np.testing.assert_array_equal(new.solve(*arguments), expected)
    np.testing.assert_array_equal(
        new.solve(*arguments, warm_start="last"), solver.solve(*arguments, warm_start="last")
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol(protocol: int) -> None:
    solver = BilateralSolver(GRIDS["colour"](), 2, method="paper", max_iterations=7)
    target = np.random.default_rng(2).normal(size=solver.grid.shape)
    new = again(solver, protocol)
    np.testing.assert_array_equal(new.solve(target), solver.solve(target))
    assert (new.smoothness, new.max_iterations) == (2, 7)


@pytest.mark.parametrize("name", ["gray", "features"])
def test_updates_and_warm_starts_survive(name: str) -> None:
    solver = BilateralSolver(GRIDS[name](), 3)
    features = solver.grid.__getstate__()["_features"]
    target = np.random.default_rng(3).normal(size=solver.grid.shape)
    solver.solve(target)
    solver.update(np.roll(features, 1, axis=1))  # the last solution belongs to the old grid
    new = again(solver)
    expected = solver.solve(target, warm_start="last")
    np.testing.assert_array_equal(new.solve(target, warm_start="last"), expected)
    new.update(features)
    solver.update(features)
    np.testing.assert_array_equal(
        new.solve(target, warm_start="last"), solver.solve(target, warm_start="last")
    )


def test_smooth_reads_the_pickled_reference() -> None:
    solver = BilateralSolver(GRIDS["colour"]())
    target = np.random.default_rng(4).normal(size=solver.grid.shape)
    np.testing.assert_array_equal(
        again(solver).solve(target, smooth=(4, 4)), solver.solve(target, smooth=(4, 4))
    )


def test_a_memory_map_is_enough() -> None:
    # joblib replaces large arrays of a pickle by read-only memory maps.
    grid = GRIDS["colour"]()
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(grid, 5, buffer_callback=buffers.append)
    read_only = [bytes(buffer.raw()) for buffer in buffers]
    new = pickle.loads(data, buffers=read_only)
    target = np.random.default_rng(5).normal(size=grid.shape)
    np.testing.assert_array_equal(
        BilateralSolver(new).solve(target), BilateralSolver(grid).solve(target)
    )


# Other objects that users hold


def test_block_means_info_and_losses() -> None:
    observation = BlockMeans(textured(4, 5) / 255, (13, 17), weights=np.ones((4, 5)))
    pixels = np.random.default_rng(6).normal(size=(13, 17))
    for new in (again(observation), copy.deepcopy(observation)):
        np.testing.assert_array_equal(new.back_project(pixels), observation.back_project(pixels))
    _, info = bilateral.solve(textured(9, 9), pixels[:9, :9], return_info=True)
    assert again(info) == copy.deepcopy(info) == info
    for loss in (losses.GemanMcClure(2.0), losses.Barron(-1.5, 3.0), losses.Huber(0.5)):
        assert again(loss) == copy.deepcopy(loss) == loss


def test_a_colorizer_continues_from_its_last_solution() -> None:
    gray = textured(30, 40)
    strokes = np.zeros((30, 40, 4), np.uint8)
    strokes[5:8, 4:12] = (160, 110, 100, 255)
    colorizer = Colorizer(gray)
    colorizer.colorize(strokes)
    new, other = again(colorizer), copy.deepcopy(colorizer)
    strokes[20:23, 30:36] = (100, 130, 120, 255)
    expected = colorizer.colorize(strokes)
    np.testing.assert_array_equal(new.colorize(strokes), expected)
    np.testing.assert_array_equal(other.colorize(strokes), expected)


def solve_elsewhere(solver: BilateralSolver, target: Array) -> Array:
    return solver.solve(target)


@pytest.mark.stress
def test_a_spawned_process_gets_the_same_bits() -> None:
    solver = BilateralSolver(GRIDS["colour"]())
    target = np.random.default_rng(7).normal(size=solver.grid.shape)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        elsewhere = pool.apply(solve_elsewhere, (solver, target))
    np.testing.assert_array_equal(elsewhere, solver.solve(target))


class ArrayFilePickler(pickle.Pickler):
    """Save each array to a file of its own, as joblib does."""

    def __init__(self, path: Path) -> None:
        self._stream = io.BytesIO()
        self._path, self._count = path, 0
        super().__init__(self._stream)

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, np.ndarray):
            return None
        self._count += 1
        np.save(self._path / f"{self._count}.npy", value)
        return f"{self._count}.npy"

    def dumps(self, value: Any) -> bytes:
        self.dump(value)
        assert self._count > 0
        return self._stream.getvalue()


class ArrayFileUnpickler(pickle.Unpickler):
    """Load the arrays from their files, or map them to memory."""

    def __init__(self, data: bytes, path: Path, mode: Literal["r", "c"] | None) -> None:
        super().__init__(io.BytesIO(data))
        self._path, self._mode = path, mode

    def persistent_load(self, name: str) -> Array:
        array: Array = np.load(self._path / name, mmap_mode=self._mode)
        return array


@pytest.mark.parametrize("mode", [None, "r", "c"])
def test_arrays_in_files_of_their_own(mode: Literal["r", "c"] | None, tmp_path: Path) -> None:
    grid = GRIDS["colour"]()
    data = ArrayFilePickler(tmp_path).dumps(grid)
    new = ArrayFileUnpickler(data, tmp_path, mode).load()
    np.testing.assert_array_equal(new.coordinates(), grid.coordinates())
    target = np.random.default_rng(8).normal(size=grid.shape)
    np.testing.assert_array_equal(
        BilateralSolver(new).solve(target), BilateralSolver(grid).solve(target)
    )


# Size


@given(references(), grid_options())
def test_a_pickle_is_small(reference: Array, options: dict[str, Any]) -> None:
    grid = BilateralGrid(reference, **options, reference_max=white(reference))
    # A rank per pixel and a last rank per tile, of at most 2 bytes up to 65536 pixels per tile; a
    # key per vertex, wide where values leave the range of the dtype; a cell per row and column.
    height, width = grid.shape
    pixels = height * width
    wide = 16 if reference.dtype.kind == "f" else 4
    bound = 4 * pixels + wide * grid.n_vertices + 4 * (height + width)
    assert len(pickle.dumps(grid)) <= reference.nbytes + bound + 2000


def test_a_photograph_takes_two_bytes_per_pixel_beside_itself() -> None:
    y, x = np.mgrid[:400, :600]
    photo = np.stack([x // 4 + y // 8, x // 3, y // 2], axis=2).astype(np.uint8)
    photo += textured(400, 600, 3) // 32
    grid = BilateralGrid(photo)
    solver = BilateralSolver(grid)
    solver.solve(np.ones(grid.shape))
    assert len(pickle.dumps(grid)) < photo.nbytes + 2 * photo[..., 0].size
    # The solver adds only its last solution, one float per vertex.
    assert len(pickle.dumps(solver)) < len(pickle.dumps(grid)) + 8 * grid.n_vertices + 2000
    assert len(pickle.dumps([solver, grid])) < len(pickle.dumps(solver)) + 100


def test_a_pickled_colorizer_does_not_hold_the_luma() -> None:
    gray = textured(200, 300)
    colorizer = Colorizer(gray)
    strokes = np.zeros((200, 300, 4), np.uint8)
    strokes[5:8, 4:12] = (160, 110, 100, 255)
    colorizer.colorize(strokes)
    solver = colorizer.__getstate__()["_solver"]
    assert len(pickle.dumps(colorizer)) < len(pickle.dumps(solver)) + gray.size + 2000


# Copies


def test_copies_of_a_solver_are_independent() -> None:
    photo = textured(20, 24)
    solver = BilateralSolver(BilateralGrid(photo), 3)
    target = np.random.default_rng(8).normal(size=(20, 24))
    expected = solver.solve(target)
    for make in (copy.copy, copy.deepcopy, again):
        other = make(solver)
        other.update(photo[::-1])
        other.smoothness = 100.0
        other.solve(5 * target)
        np.testing.assert_array_equal(solver.solve(target), expected)
        assert other.grid is not solver.grid


def test_a_deep_copy_does_not_share_the_reference() -> None:
    photo = textured(20, 24)
    grid = BilateralGrid(photo)
    shallow, deep = copy.copy(grid), copy.deepcopy(grid)
    target = np.random.default_rng(9).normal(size=(20, 24))
    expected = BilateralSolver(grid).solve(target, smooth=(4, 4))
    photo[:] = 0  # the grid keeps a reference to the caller's array
    np.testing.assert_array_equal(BilateralSolver(deep).solve(target, smooth=(4, 4)), expected)
    np.testing.assert_array_equal(
        BilateralSolver(shallow).solve(target, smooth=(4, 4)),
        BilateralSolver(grid).solve(target, smooth=(4, 4)),
    )


def test_subclasses_and_attributes_survive() -> None:
    for new in (again(Named(textured(5, 6))), copy.copy(Named(textured(5, 6)))):
        assert type(new) is Named
        assert new.name == "mine"


class Named(BilateralGrid):
    """A grid with an attribute of its own."""

    def __init__(self, reference: Array) -> None:
        super().__init__(reference)
        self.name = "mine"


# Damage


def damage(rng: np.random.Generator, value: Any) -> Any:
    """Change an entry of a state: one value, the length, the dtype or the type."""
    if isinstance(value, list | tuple):
        return damage(rng, np.array(value)).tolist() if rng.integers(2) else value[:-1]
    if not isinstance(value, np.ndarray):
        return rng.choice([None, 0, 1, 2, 3, -1, 2**70, "x"])
    kind = rng.integers(7)
    if kind == 0:
        return value[: rng.integers(len(value) + 1)]
    if kind == 1:
        return np.concatenate([value, value[-1:]])
    if kind == 2:
        return value.astype(rng.choice(["u1", "u2", "u4", "i4", "i8", "u8", "f4", "f8", "S1"]))
    if kind == 3:
        return value.reshape(1, *value.shape)
    if kind == 4:
        return rng.permutation(value)
    data = bytearray(value.tobytes())
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return np.frombuffer(bytes(data), value.dtype).reshape(value.shape)


@pytest.mark.parametrize("name", GRIDS)
@given(seeds)
def test_a_damaged_grid_raises_or_works(name: str, seed: int) -> None:
    rng, grid = np.random.default_rng(seed), GRIDS[name]()
    state = grid.__getstate__()
    part = state["core"] if rng.integers(4) else state
    entry = rng.choice([key for key in part if np.size(part[key]) and key != "_options"])
    if entry == "core":
        part["core"] = None
    elif rng.integers(8) == 0:
        del part[entry]
    else:
        part[entry] = damage(rng, part[entry])
    try:
        new = restored(grid, state)
    except ValueError:
        return
    target = rng.normal(size=new.shape)
    target[rng.uniform(size=new.shape) < 0.5] = np.nan
    target.flat[0] = 1
    solver = BilateralSolver(new, max_iterations=1000)
    assert np.isfinite(solver.solve(target)).all()
    assert np.isfinite(new.blur(new.splat(np.ones(new.shape)))).all()
    assert len(new.coordinates()) == new.n_vertices


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("version", 2, "version 1, got version 2"),
        ("version", None, "version 1"),
        ("rank", np.full(1200, 255, np.uint8), "ranks of a tile"),
        ("rank", np.zeros(1200, np.uint8), "ranks of a tile"),
        ("rank", np.zeros(1199, np.uint8), "one rank per pixel"),
        ("rank", np.zeros(1200, np.int64), "dtype"),
        ("last_rank", np.zeros(20, np.uint8), "one key per vertex"),
        ("last_rank", np.zeros(21, np.uint8), "one last rank per tile"),
        ("key_bits", [16, 16], "fit into a key"),
        ("key_bits", [1], "keys of a tile"),
        ("key_bits", [63], "62 bits"),
        ("key_bits", [], "keys of a tile"),
        ("x_cell", np.arange(40)[::-1], "decrease"),
        ("x_cell", np.full(40, -1), "negative"),
        ("x_cell", np.full(40, 2**50), "2\\^40"),
        ("x_cell", np.zeros(0, np.uint8), "a pixel"),
        ("t_cell", np.ones(1, np.uint8), "one frame"),
        ("space_dimensions", 4, "one frame"),
        ("blur", (float("nan"), 1.0, 1.0), "blur"),
        ("blur", (1.0, 2.0, 0.0), "between 0 and 1"),
        ("keys", None, "keys"),
        ("keys", np.zeros((1, 3), np.uint64), "n x 2"),
    ],
)
def test_the_message_names_the_damage(entry: str, value: Any, message: str) -> None:
    grid = GRIDS["gray"]()
    state = grid.__getstate__()
    state["core"][entry] = value
    with pytest.raises(ValueError, match=message):
        restored(grid, state)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("version", 0),
        ("_features", np.zeros((30, 41, 1), np.uint8)),
        ("_features", np.zeros((30, 40, 3), np.uint8)),
        ("_features", np.full((30, 40, 1), np.nan)),
        ("_features", None),
        ("_change_scale", [1.0, 2.0]),
        ("_change_scale", "x"),
        ("_blur_unit", -1.0),
        ("highest", float("nan")),
        ("core", 7),
    ],
)
def test_a_damaged_python_part_raises(entry: str, value: Any) -> None:
    grid = GRIDS["gray"]()
    with pytest.raises(ValueError, match=r"BilateralGrid|grid state"):
        restored(grid, grid.__getstate__() | {entry: value})
    with pytest.raises(ValueError, match="BilateralGrid"):
        restored(grid, [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("version", 0),
        ("grid", None),
        ("smoothness", -1.0),
        ("preconditioner", "x"),
        ("max_iterations", "x"),
        ("_last", 3),
        ("_last", np.zeros((3, 1))),
        ("_last", np.zeros((180, 1), int)),
        ("_last", np.zeros((180, 0))),
    ],
)
def test_a_damaged_solver_raises(entry: str, value: Any) -> None:
    solver = BilateralSolver(GRIDS["gray"]())
    assert solver.grid.n_vertices == 180
    if isinstance(value, np.ndarray):
        value = solver.grid, value
    new = BilateralSolver.__new__(BilateralSolver)
    with pytest.raises(ValueError, match=r"BilateralSolver|warm start"):
        new.__setstate__(solver.__getstate__() | {entry: value})
