"""An argument of any odd type is accepted, or refused by an error that names it."""

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver, BlockMeans, confidence, tasks

PHOTO = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
LARGE_PHOTO = PHOTO.repeat(2, axis=0).repeat(2, axis=1)
MAP = np.random.default_rng(1).uniform(1, 2, (4, 6))
MASK = MAP > 1.5


class Hostile:
    """Raises an error of its own whatever is asked of it."""

    def fail(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("hostile")

    __array__ = __bool__ = __float__ = __index__ = __iter__ = __len__ = __repr__ = fail


ODD: list[Any] = [
    None,
    "abc",
    b"abc",
    [[1, 2], [3]],
    (8, [8]),
    [8, 8],
    [],
    {},
    {1, 2},
    object(),
    Hostile(),
    int,
    1 + 2j,
    Fraction(1, 3),
    np.nan,
    -(10**400),
    np.array(3.0),
    np.array(None),
    np.array([8.0, 8.0]),
    np.zeros((0, 0)),
    np.zeros((1, 1, 1, 1, 1)),
    np.ma.masked_array(MAP),
    MAP + 0j,
    MASK,
    MAP.astype(object),
    MAP.astype(str),
    np.zeros((4, 6), "M8[s]"),
    np.zeros((4, 6), "m8[s]"),
    np.zeros((4, 6), [("a", "f4")]),
    memoryview(PHOTO),
]

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (bilateral.solve, {"reference": PHOTO, "target": MAP}),
    (BilateralGrid, {"reference": PHOTO}),
    (BilateralGrid.from_features, {"features": MAP, "sigmas": 1, "sigma_space": 8}),
    (BilateralSolver.solve, {"target": MAP}),
    (BilateralSolver.solve_robust, {"target": MAP, "iterations": 2}),
    (BilateralSolver.variance, {}),
    (BilateralSolver.update, {"reference": PHOTO}),
    (
        bilateral.domain_transform,
        {"image": MAP, "reference": PHOTO, "sigma_xy": 3, "sigma_rgb": 3},
    ),
    (bilateral.median, {"image": MAP}),
    (bilateral.polish, {"image": MAP, "reference": PHOTO, "scale": 1, "target": MAP}),
    (BlockMeans, {"low": MAP, "shape": (8, 12)}),
    (confidence.edge_aware_variance, {"target": MAP, "reference": PHOTO}),
    (confidence.upsampling_support, {"shape": (8, 8), "factor": 2}),
    (confidence.from_interval, {"lower": MAP, "upper": MAP}),
    (confidence.left_right_consistency, {"left": MAP, "right": MAP}),
    (tasks.refine_depth, {"depth": MAP, "reference": PHOTO}),
    (tasks.superres_depth, {"depth_lowres": MAP, "reference": LARGE_PHOTO}),
    (tasks.defocus, {"image": PHOTO, "depth": MAP, "focus": 1, "aperture": 1}),
    (tasks.refine_segmentation, {"probabilities": MASK, "image": PHOTO}),
    (tasks.colorize, {"gray": PHOTO[..., 0], "scribbles": PHOTO, "mask": MASK}),
    (tasks.Colorizer, {"gray": PHOTO}),
    (tasks.cut_out, {"photo": PHOTO, "scribbles": np.sign(MAP - np.median(MAP)), "mask": None}),
    (tasks.Cutter, {"photo": PHOTO}),
    (tasks.stereo_depth, {"left": PHOTO, "right": PHOTO, "max_disparity": 2}),
    (tasks.match_blocks, {"left": PHOTO, "right": PHOTO, "max_disparity": 2}),
    (bilateral.GemanMcClure, {}),
    (bilateral.Barron, {"alpha": 1.0}),
]
PARAMETERS = [
    pytest.param(function, arguments, name, id=f"{function.__qualname__}-{name}")
    for function, arguments in CALLS
    for name in inspect.signature(function).parameters
    # Errors of a callback are its own, and sigma_t gives the other arguments another meaning.
    if name not in ("self", "callback", "sigma_t")
]


def check(function: Callable[..., Any], arguments: dict[str, Any], name: str, value: Any) -> None:
    try:
        function(**(arguments | {name: value}))
    except (TypeError, ValueError) as error:
        assert name in str(error), value  # noqa: PT017


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "arguments", "name"), PARAMETERS)
def test_an_error_names_the_argument(
    function: Callable[..., Any], arguments: dict[str, Any], name: str
) -> None:
    if function.__qualname__.startswith("BilateralSolver."):
        arguments = {"self": BilateralSolver(BilateralGrid(PHOTO)), **arguments}
    for value in ODD:
        check(function, arguments, name, value)


@pytest.mark.filterwarnings("ignore")
def test_tensors_among_arrays() -> None:
    torch = pytest.importorskip("torch", reason="the arguments are tensors")
    dense = torch.from_numpy(MAP)
    tensors = [
        dense,
        dense.clone().requires_grad_(),
        dense.bfloat16(),
        dense.to("meta"),
        dense.to_sparse(),
        dense.to_sparse_csr(),
    ]
    for function, arguments in CALLS:
        if function is tasks.refine_segmentation or "." in function.__qualname__:
            continue
        for name in arguments:
            for value in tensors:
                check(function, arguments, name, value)


def test_keep_holes_needs_a_value_that_the_dtype_can_hold() -> None:
    depth = (100 * MAP).astype(np.uint16)
    for invalid in (None, -1, 0.5, 70_000, np.inf):
        with pytest.raises(ValueError, match=r"^keep_holes: expected an invalid value that uint16"):
            tasks.superres_depth(depth, LARGE_PHOTO, keep_holes=True, invalid=invalid)
    depth[1, 2] = 0
    found = tasks.superres_depth(depth, LARGE_PHOTO, keep_holes=True, invalid=0)
    assert (found == 0).sum() == 4
    real = tasks.superres_depth(depth, LARGE_PHOTO, confidence=depth, keep_holes=True, dtype=float)
    assert np.isnan(real).sum() == 4
