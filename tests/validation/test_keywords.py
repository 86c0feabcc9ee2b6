"""Keywords: aliases, both names at once, and names of other libraries."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver, confidence, tasks
from bilateral.validation import keywords

PHOTO = np.random.default_rng(0).integers(0, 256, (8, 12, 3), np.uint8)
LARGE_PHOTO = PHOTO.repeat(2, axis=0).repeat(2, axis=1)
MAP = np.random.default_rng(1).uniform(1, 2, (8, 12))
MASK = MAP > 1.5


def solver() -> BilateralSolver:
    return BilateralSolver(BilateralGrid(PHOTO))


# function, its arguments by their own names, and each alias with the name it stands for
ALIASES: list[tuple[Callable[..., Any], dict[str, Any], dict[str, str]]] = [
    (
        bilateral.solve,
        {"reference": PHOTO, "target": MAP},
        {"photo": "reference", "depth": "target"},
    ),
    (lambda **o: solver().solve(**o), {"target": MAP}, {"depth": "target"}),
    (lambda **o: solver().solve_robust(**o), {"target": MAP}, {"depth": "target"}),
    (lambda **o: solver().update(**o), {"reference": PHOTO}, {"photo": "reference"}),
    (lambda **o: BilateralGrid(**o).shape, {"reference": PHOTO}, {"photo": "reference"}),
    (
        bilateral.domain_transform,
        {"image": MAP, "reference": PHOTO, "sigma_xy": 3, "sigma_rgb": 9},
        {"photo": "reference", "target": "image", "depth": "image"},
    ),
    (
        bilateral.polish,
        {"image": MAP, "reference": PHOTO, "scale": 1},
        {"photo": "reference", "depth": "image"},
    ),
    (
        confidence.edge_aware_variance,
        {"target": MAP, "reference": PHOTO},
        {"photo": "reference", "depth": "target"},
    ),
    (
        tasks.refine_depth,
        {"depth": MAP, "reference": PHOTO},
        {"photo": "reference", "target": "depth"},
    ),
    (
        tasks.superres_depth,
        {"depth_lowres": MAP, "reference": LARGE_PHOTO},
        {"photo": "reference", "target": "depth_lowres", "depth": "depth_lowres"},
    ),
    (
        tasks.defocus,
        {"image": PHOTO, "depth": MAP, "focus": 1, "aperture": 2},
        {"photo": "image", "reference": "image", "target": "depth"},
    ),
    (
        tasks.refine_segmentation,
        {"probabilities": MASK, "image": PHOTO},
        {"photo": "image", "reference": "image", "target": "probabilities"},
    ),
    (
        tasks.colorize,
        {"gray": PHOTO[..., 0], "scribbles": PHOTO, "mask": MASK},
        {"photo": "gray", "reference": "gray"},
    ),
]


@pytest.mark.parametrize(("function", "arguments", "aliases"), ALIASES)
def test_an_alias_means_its_parameter(
    function: Callable[..., Any], arguments: dict[str, Any], aliases: dict[str, str]
) -> None:
    expected = function(**arguments)
    for alias, own in aliases.items():
        given = {alias if name == own else name: value for name, value in arguments.items()}
        np.testing.assert_array_equal(function(**given), expected)
        with pytest.raises(TypeError, match=rf"got both '{own}' and '{alias}'"):
            function(**arguments, **{alias: arguments[own]})


def test_an_alias_beside_a_positional_argument() -> None:
    with pytest.raises(TypeError, match=r"^solve\(\) got both 'reference' and 'photo'"):
        bilateral.solve(PHOTO, MAP, photo=PHOTO)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^superres_depth\(\) got 'depth_lowres' under two names"):
        tasks.superres_depth(depth=MAP, target=MAP, photo=PHOTO)  # type: ignore[call-arg]


# keyword of another library, name here
FOREIGN = [
    ("lam", "smoothness"),
    ("lambda_", "smoothness"),
    ("lambd", "smoothness"),
    ("bs_lam", "smoothness"),
    ("sigma_spatial", "sigma_xy"),
    ("sigmaSpace", "sigma_xy"),
    ("sigmaColor", "sigma_luma"),
    ("num_iter", "max_iterations"),
    ("n_iters", "max_iterations"),
    ("cg_maxiter", "max_iterations"),
    ("max_tries", "max_iterations"),
    ("cg_tol", "tolerance"),
    ("guide", "reference"),
    ("src", "target"),
    ("weights", "confidence"),
]


@pytest.mark.parametrize(("name", "own"), FOREIGN)
def test_keywords_of_other_libraries_are_answered(name: str, own: str) -> None:
    with pytest.raises(TypeError, match=rf"^solve\(\) has no parameter '{name}'; .* '{own}' \("):
        bilateral.solve(PHOTO, MAP, **{name: 3})


def test_each_function_names_its_own_parameters() -> None:
    with pytest.raises(TypeError, match=r"^domain_transform\(\) .*'sigmaColor'.*'sigma_rgb'"):
        bilateral.domain_transform(MAP, PHOTO, 3, sigmaColor=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^BilateralSolver\(\) .*'lam'.*'smoothness'"):
        BilateralSolver(BilateralGrid(PHOTO), lam=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^BilateralGrid\(\) .*'sigma_spatial'.*'sigma_xy'"):
        BilateralGrid(PHOTO, sigma_spatial=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^solve\(\) got an unexpected keyword argument 'colour'"):
        bilateral.solve(PHOTO, MAP, colour=3)  # type: ignore[call-arg]


def test_a_decorated_function_keeps_its_description() -> None:
    def function(a: int, b: int = 2, *, c: int = 3) -> int:
        """Add."""
        return a + b + c

    decorated = keywords(first="a")(function)
    assert inspect.signature(decorated) == inspect.signature(function)
    assert (decorated.__name__, decorated.__doc__) == ("function", "Add.")
    assert decorated.__qualname__ == function.__qualname__
    call: Callable[..., Any] = decorated
    assert call(1) == call(first=1) == call(b=2, first=1) == call(1, c=3) == 6
