"""The public names: a test fails when one disappears or an argument is renamed or moved."""

import inspect
import subprocess
import sys
from typing import Any

import pytest

import bilateral

NAMES = {
    "Barron",
    "BilateralGrid",
    "BilateralSolver",
    "Cauchy",
    "Charbonnier",
    "ConvergenceWarning",
    "GemanMcClure",
    "Huber",
    "Loss",
    "SolveInfo",
    "Welsch",
    "__version__",
    "confidence",
    "domain_transform",
    "get_num_threads",
    "median",
    "set_num_threads",
    "solve",
    "tasks",
}

# Positional arguments in their order, then those given by name.
SIGNATURES: dict[str, tuple[list[str], set[str]]] = {
    "solve": (
        ["reference", "target", "confidence"],
        {
            "sigma_xy",
            "sigma_luma",
            "sigma_chroma",
            "smoothness",
            "blur",
            "tolerance",
            "max_iterations",
            "method",
            "preconditioner",
            "initial",
            "smooth",
            "rank_tolerance",
            "warm_start",
            "callback",
            "return_info",
            "reference_max",
            "dtype",
        },
    ),
    "BilateralGrid": (
        ["reference", "sigma_xy", "sigma_luma", "sigma_chroma", "blur"],
        {"reference_max"},
    ),
    "BilateralGrid.splat": (["self", "pixels"], set()),
    "BilateralGrid.slice": (["self", "vertices"], set()),
    "BilateralGrid.blur": (["self", "vertices"], set()),
    "BilateralGrid.coordinates": (["self"], set()),
    "BilateralSolver": (
        ["grid", "smoothness"],
        {"tolerance", "max_iterations", "preconditioner", "initial", "method"},
    ),
    "BilateralSolver.solve": (
        ["self", "target", "confidence"],
        {"smooth", "rank_tolerance", "warm_start", "callback", "return_info", "dtype"},
    ),
    "BilateralSolver.solve_robust": (
        ["self", "target", "confidence", "loss", "iterations"],
        {"weights", "min_change", "smooth", "warm_start", "callback", "return_info", "dtype"},
    ),
    "BilateralSolver.update": (["self", "reference"], set()),
    "BilateralSolver.variance": (["self", "confidence"], {"probes", "seed"}),
    "SolveInfo": (["iterations", "converged", "residuals", "n_vertices", "seconds", "rank"], set()),
    **{
        name: (["scale"], set())
        for name in ("Cauchy", "Charbonnier", "GemanMcClure", "Huber", "Welsch")
    },
    "Barron": (["alpha", "scale"], set()),
    "GemanMcClure.rho": (["self", "e"], set()),
    "GemanMcClure.weight": (["self", "e"], set()),
    "median": (["image", "size"], set()),
    "confidence.edge_aware_variance": (
        ["target", "reference", "sigma_xy", "sigma_rgb", "sigma", "margin"],
        {"reference_max"},
    ),
    "confidence.upsampling_support": (["shape", "factor", "sigma"], {"overlap"}),
    "confidence.from_interval": (["lower", "upper"], {"scale"}),
    "confidence.left_right_consistency": (["left", "right", "threshold"], {"view", "soft"}),
    "domain_transform": (
        ["image", "reference", "sigma_xy", "sigma_rgb", "iterations"],
        {"weights", "reference_max", "dtype"},
    ),
    "tasks.stereo_depth": (
        ["left", "right", "max_disparity"],
        {
            "window",
            "margin",
            "consistency",
            "sigma_xy",
            "sigma_luma",
            "sigma_chroma",
            "smoothness",
            "loss",
            "iterations",
            "smooth",
            "reference_max",
        },
    ),
    "tasks.match_blocks": (
        ["left", "right", "max_disparity"],
        {"window", "margin", "consistency"},
    ),
    "tasks.colorize": (
        ["gray", "scribbles", "mask"],
        {"preset", "sigma_xy", "sigma_luma", "smoothness", "reference_max"},
    ),
    "tasks.defocus": (
        ["image", "depth", "focus", "aperture"],
        {"kind", "blades", "rotation", "max_radius", "linear"},
    ),
    "tasks.refine_depth": (
        ["depth", "reference", "confidence"],
        {"preset", "invalid", "mask", "sigma_xy", "scale", "reference_max", "dtype"},
    ),
    "tasks.refine_segmentation": (
        ["probabilities", "image"],
        {
            "confidence",
            "labels",
            "logits",
            "ignore",
            "sigma_xy",
            "sigma_luma",
            "sigma_chroma",
            "smoothness",
            "rank_tolerance",
            "reference_max",
            "dtype",
        },
    ),
    "set_num_threads": (["n"], set()),
    "get_num_threads": ([], set()),
}

DEFAULTS = {
    "solve": {
        "confidence": None,
        "sigma_xy": 8,
        "sigma_luma": 8,
        "sigma_chroma": 8,
        "smoothness": 4.0,
        "blur": "paper",
        "tolerance": 1e-3,
        "warm_start": None,
        "callback": None,
        "return_info": False,
    },
    "BilateralGrid": {"sigma_xy": 8, "sigma_luma": 8, "sigma_chroma": 8, "blur": "paper"},
    "BilateralSolver": {"smoothness": 4.0, "tolerance": 1e-3},
    "BilateralSolver.solve": {"confidence": None, "rank_tolerance": None, "return_info": False},
    "BilateralSolver.solve_robust": {
        "confidence": None,
        "loss": bilateral.GemanMcClure(1.0),
        "iterations": 32,
        "weights": "joint",
        "min_change": 0.0,
    },
    "BilateralSolver.variance": {"confidence": None, "probes": 16, "seed": 0},
    "GemanMcClure": {"scale": 1.0},
    "median": {"size": 5},
    "confidence.edge_aware_variance": {"sigma_xy": 32, "sigma_rgb": 32, "sigma": 2.0, "margin": 0},
    "confidence.upsampling_support": {"sigma": None, "overlap": "nearest"},
    "confidence.left_right_consistency": {"threshold": 1.0, "view": "left", "soft": False},
    "domain_transform": {"iterations": 3, "weights": None},
    "tasks.refine_segmentation": {"confidence": "boundary", "labels": False, "ignore": None},
    "tasks.refine_depth": {"confidence": None, "preset": "sensor", "invalid": None, "mask": None},
}


def parameters(name: str) -> dict[str, inspect.Parameter]:
    thing: Any = bilateral
    for part in name.split("."):
        thing = getattr(thing, part)
    return dict(inspect.signature(thing).parameters)


def test_no_public_name_is_missing() -> None:
    assert set(bilateral.__all__) >= NAMES
    for name in bilateral.__all__:
        assert hasattr(bilateral, name)


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_keep_their_names_and_places(name: str) -> None:
    positional, by_name = SIGNATURES[name]
    found = parameters(name)
    assert list(found)[: len(positional)] == positional
    for argument in positional:
        assert found[argument].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert found.keys() >= by_name
    for argument in found.keys() - set(positional):  # anything added later has to be optional
        assert found[argument].default is not inspect.Parameter.empty


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_stay(name: str) -> None:
    found = parameters(name)
    assert {argument: found[argument].default for argument in DEFAULTS[name]} == DEFAULTS[name]


def test_a_convergence_warning_is_a_user_warning() -> None:
    assert issubclass(bilateral.ConvergenceWarning, UserWarning)


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert bilateral.__version__ == version("bilateral")


def test_attributes_of_the_grid() -> None:
    for name in ("n_vertices", "coordinates", "splat", "slice", "blur"):
        assert hasattr(bilateral.BilateralGrid, name)
    assert bilateral.BilateralGrid([[0.0, 1.0]]).shape == (1, 2)


@pytest.mark.parametrize("module", ["scipy", "skimage", "torch", "rich", "PIL", "triton"])
def test_importing_needs_no_extra(module: str) -> None:
    code = f"import bilateral, sys; sys.exit({module!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
