"""Public interface: every name, parameter and default, compared with a literal table.

A removed name, a renamed or moved parameter, a changed default and a new public name all fail.
"""

import importlib
import inspect
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

import bilateral

# name -> signature without annotations; classes list their constructor and public members
API: dict[str, dict[str, str]] = {
    "bilateral": {
        "__version__": "str",
        "Barron": "(alpha, scale=1.0)",
        "Barron.convex": "property",
        "Barron.rho": "(self, e)",
        "Barron.scale": "float",
        "Barron.weight": "(self, e)",
        "BilateralGrid": (
            "(reference, sigma_xy=8, sigma_luma=8, sigma_chroma=8, blur='paper', *, "
            "sigma_t=None, reference_max=None)"
        ),
        "BilateralGrid.blur": "(self, vertices)",
        "BilateralGrid.coordinates": "(self)",
        "BilateralGrid.from_features": "(features, sigmas, sigma_space, *, blur='paper')",
        "BilateralGrid.n_vertices": "property",
        "BilateralGrid.slice": "(self, vertices)",
        "BilateralGrid.splat": "(self, pixels)",
        "BilateralSolver": (
            "(grid, smoothness=4.0, *, tolerance=0.001, max_iterations=None, "
            "preconditioner='multigrid', initial=None, method=None, model='constant', "
            "slope_smoothness=3.0, slope_ridge=0.001, clamp=True)"
        ),
        "BilateralSolver.solve": (
            "(self, target, confidence=None, *, smooth=None, rank_tolerance=None, "
            "warm_start=None, callback=None, return_info=False, dtype=None)"
        ),
        "BilateralSolver.solve_robust": (
            "(self, target, confidence=None, loss=GemanMcClure(scale=1.0), iterations=32, *, "
            "weights='joint', min_change=0.0, smooth=None, warm_start=None, callback=None, "
            "return_info=False, dtype=None)"
        ),
        "BilateralSolver.update": "(self, reference)",
        "BilateralSolver.variance": "(self, confidence=None, *, probes=16, seed=0)",
        "BlockMeans": "(low, shape, weights=None)",
        "BlockMeans.back_project": "(self, pixels)",
        "BlockMeans.means": "(self, pixels)",
        "BlockMeans.spread": "(self, values)",
        "Cauchy": "(scale=1.0)",
        "Cauchy.convex": "bool",
        "Cauchy.rho": "(self, e)",
        "Cauchy.scale": "float",
        "Cauchy.weight": "(self, e)",
        "Charbonnier": "(scale=1.0)",
        "Charbonnier.convex": "bool",
        "Charbonnier.rho": "(self, e)",
        "Charbonnier.scale": "float",
        "Charbonnier.weight": "(self, e)",
        "confidence": "module",
        "ConvergenceWarning": "subclass of UserWarning",
        "domain_transform": (
            "(image, reference, sigma_xy, sigma_rgb, iterations=3, *, weights=None, "
            "reference_max=None, dtype=None)"
        ),
        "GemanMcClure": "(scale=1.0)",
        "GemanMcClure.convex": "bool",
        "GemanMcClure.rho": "(self, e)",
        "GemanMcClure.scale": "float",
        "GemanMcClure.weight": "(self, e)",
        "get_num_threads": "()",
        "Huber": "(scale=1.0)",
        "Huber.convex": "bool",
        "Huber.rho": "(self, e)",
        "Huber.scale": "float",
        "Huber.weight": "(self, e)",
        "Loss": "(*args, **kwargs)",
        "Loss.rho": "(self, e, /)",
        "Loss.weight": "(self, e, /)",
        "median": "(image, size=5)",
        "polish": (
            "(image, reference, target=None, weights=None, *, scale, smoothness=4.0, "
            "sigma_rgb=30.0, anchor=0.05, observation=None, rounds=2, steps=15, "
            "reference_max=None, dtype=None)"
        ),
        "set_num_threads": "(n)",
        "solve": (
            "(reference, target, confidence=None, *, sigma_xy=8, sigma_luma=8, sigma_chroma=8, "
            "sigma_t=None, smoothness=4.0, blur='paper', tolerance=0.001, max_iterations=None, "
            "preconditioner='multigrid', initial=None, method=None, model='constant', "
            "slope_smoothness=3.0, slope_ridge=0.001, clamp=True, smooth=None, "
            "rank_tolerance=None, warm_start=None, callback=None, return_info=False, "
            "reference_max=None, dtype=None)"
        ),
        "SolveInfo": (
            "(iterations, converged, residuals, n_vertices, seconds, rank=1, smoothness=nan)"
        ),
        "SolveInfo.rank": "int",
        "SolveInfo.smoothness": "float",
        "tasks": "module",
        "Welsch": "(scale=1.0)",
        "Welsch.convex": "bool",
        "Welsch.rho": "(self, e)",
        "Welsch.scale": "float",
        "Welsch.weight": "(self, e)",
    },
    "bilateral.tasks": {
        "AlignInfo": (
            "(unit, kind, reciprocal, scale, shift, points, inliers, smoothness, error, "
            "expected_error)"
        ),
        "align_depth": (
            "(relative, metric, reference=None, confidence=None, *, kind='auto', invalid=None, "
            "mask=None, sigma_xy=None, sigma_relative=0.07, sigma_luma=32.0, reference_max=None, "
            "return_info=False, dtype=None)"
        ),
        "colorize": (
            "(gray, scribbles, mask=None, *, preset='best', sigma_xy=None, sigma_luma=None, "
            "smoothness=None, reference_max=None)"
        ),
        "colorize_video": (
            "(frames, scribbles, *, preset='best', sigma_xy=None, sigma_luma=None, "
            "smoothness=None, reference_max=None)"
        ),
        "Colorizer": (
            "(gray, *, preset='best', sigma_xy=None, sigma_luma=None, smoothness=None, "
            "reference_max=None)"
        ),
        "Colorizer.colorize": ("(self, scribbles, mask=None, *, warm_start=True, callback=None)"),
        "cut_out": "(photo, scribbles=None, *, mask=None, hard=False, reference_max=None)",
        "Cutter": "(photo, *, reference_max=None)",
        "Cutter.cut_out": "(self, scribbles=None, mask=None, *, callback=None)",
        "complete_depth": (
            "(points, reference, confidence=None, *, kind='auto', invalid=None, mask=None, "
            "sigma_xy=None, sigma_luma=8.0, sigma_chroma=8.0, reference_max=None, dtype=None, "
            "return_confidence=False)"
        ),
        "DepthStream": "(*, invalid=None, reference_max=None, dtype=None)",
        "DepthStream.push": "(self, depth, reference, confidence=None, mask=None)",
        "DepthStream.reset": "(self)",
        "defocus": (
            "(image, depth, focus, aperture, *, kind='depth', blades=None, rotation=0.0, "
            "max_radius=None, linear=None)"
        ),
        "match_blocks": "(left, right, max_disparity, *, window=7, margin=0.05, consistency=1.0)",
        "refine_depth": (
            "(depth, reference, confidence=None, *, preset='sensor', invalid=None, mask=None, "
            "sigma_xy=None, sigma_luma=8.0, sigma_chroma=8.0, scale=None, reference_max=None, "
            "dtype=None)"
        ),
        "refine_segmentation": (
            "(probabilities, image, *, confidence='boundary', labels=False, logits=None, "
            "ignore=None, sigma_xy=None, sigma_luma=16.0, sigma_chroma=8.0, smoothness=None, "
            "rank_tolerance=0.0001, reference_max=None, dtype=None)"
        ),
        "stereo_depth": (
            "(left, right, max_disparity, *, window=7, margin=0.05, consistency=1.0, "
            "sigma_xy=None, sigma_luma=8, sigma_chroma=8, smoothness=0.5, "
            "loss=GemanMcClure(scale=1.0), iterations=16, smooth=(4, 4), reference_max=None)"
        ),
        "superres_depth": (
            "(depth_lowres, reference, factor=None, preset='best', *, confidence=None, "
            "invalid=None, keep_holes=False, reference_max=None, dtype=None)"
        ),
    },
    "bilateral.compat": {
        "BilateralGrid": "(im, sigma_spatial=32, sigma_luma=8, sigma_chroma=8)",
        "BilateralGrid.S": "cached_property",
        "BilateralGrid.blur": "(self, x)",
        "BilateralGrid.blurs": "cached_property",
        "BilateralGrid.filter": "(self, x)",
        "BilateralGrid.slice": "(self, y)",
        "BilateralGrid.splat": "(self, x)",
        "BilateralSolver": "(grid, params)",
        "BilateralSolver.Dm": "property",
        "BilateralSolver.Dn": "property",
        "BilateralSolver.solve": "(self, x, w)",
        "FastBilateralSolverFilter": (
            "(guide, sigma_spatial, sigma_luma, sigma_chroma, lambda_=128.0, num_iter=25, "
            "max_tol=1e-05)"
        ),
        "FastBilateralSolverFilter.filter": "(self, src, confidence, dst=None)",
        "bilateral_solver_output": (
            "(img_pth=None, target=None, sigma_spatial=24, sigma_luma=4, sigma_chroma=4, "
            "img=None, get_all_cc=False)"
        ),
        "bistochastize": "(grid, maxiter=10)",
        "createFastBilateralSolverFilter": (
            "(guide, sigma_spatial, sigma_luma, sigma_chroma, lambda_=128.0, num_iter=25, "
            "max_tol=1e-05)"
        ),
        "fastBilateralSolverFilter": (
            "(guide, src, confidence, sigma_spatial=8, sigma_luma=8, sigma_chroma=8, "
            "lambda_=128.0, num_iter=25, max_tol=1e-05, dst=None)"
        ),
    },
    "bilateral.dask": {
        "domain_transform": (
            "(image, reference, sigma_xy, sigma_rgb, iterations=3, *, weights=None, "
            "reference_max=None, dtype=None)"
        ),
        "map_frames": "(function, *stacks, frames=1, like=0, dtype=None, **options)",
        "solve": (
            "(reference, target, confidence=None, *, sigma_xy=8, sigma_luma=8, sigma_chroma=8, "
            "sigma_t=None, smoothness=4.0, blur='paper', tolerance=0.001, max_iterations=None, "
            "preconditioner='multigrid', initial=None, method=None, model='constant', smooth=None, "
            "rank_tolerance=None, warm_start=None, callback=None, return_info=False, "
            "reference_max=None, dtype=None)"
        ),
        "solve_robust": (
            "(reference, target, confidence=None, loss=GemanMcClure(scale=1.0), iterations=32, *, "
            "weights='joint', min_change=0.0, sigma_xy=8, sigma_luma=8, sigma_chroma=8, "
            "smoothness=4.0, blur='paper', tolerance=0.001, max_iterations=None, "
            "preconditioner='multigrid', initial=None, model='constant', smooth=None, "
            "callback=None, return_info=False, reference_max=None, dtype=None)"
        ),
    },
    "bilateral.confidence": {
        "edge_aware_variance": (
            "(target, reference, sigma_xy=32, sigma_rgb=32, sigma=2.0, margin=0, *, "
            "reference_max=None)"
        ),
        "from_interval": "(lower, upper, *, scale=1.0)",
        "left_right_consistency": "(left, right, threshold=1.0, *, view='left', soft=False)",
        "upsampling_support": "(shape, factor, sigma=None, *, overlap='nearest')",
    },
    "bilateral.torch": {
        "BilateralSolver": (
            "(*, sigma_xy=8, sigma_luma=8, sigma_chroma=8, smoothness=4.0, "
            "learn_smoothness=False, blur='paper', tolerance=0.001, max_iterations=None, "
            "preconditioner='multigrid', model='constant', slope_smoothness=3.0, "
            "slope_ridge=0.001, clamp=True, reference_max=None)"
        ),
        "BilateralSolver.extra_repr": "(self)",
        "BilateralSolver.forward": "(self, reference, target, confidence=None)",
        "BilateralSolver.smoothness": "property",
        "complete_depth": (
            "(points, reference, confidence=None, *, kind='auto', invalid=None, mask=None, "
            "sigma_xy=None, sigma_luma=8.0, sigma_chroma=8.0, reference_max=None, dtype=None, "
            "return_confidence=False)"
        ),
        "colorize": (
            "(gray, scribbles, mask=None, *, preset='best', sigma_xy=None, sigma_luma=None, "
            "smoothness=None, reference_max=None)"
        ),
        "defocus": (
            "(image, depth, focus, aperture, *, kind='depth', blades=None, rotation=0.0, "
            "max_radius=None, linear=None)"
        ),
        "domain_transform": (
            "(image, reference, sigma_xy, sigma_rgb, iterations=3, *, weights=None, "
            "reference_max=None)"
        ),
        "refine_depth": (
            "(depth, reference, confidence=None, *, preset='sensor', invalid=None, mask=None, "
            "sigma_xy=None, sigma_luma=8.0, sigma_chroma=8.0, scale=None, reference_max=None, "
            "dtype=None)"
        ),
        "median": "(image, size=5)",
        "polish": (
            "(image, reference, target=None, weights=None, *, scale, smoothness=4.0, "
            "sigma_rgb=30.0, anchor=0.05, observation=None, rounds=2, steps=15, "
            "reference_max=None)"
        ),
        "refine_segmentation": (
            "(probabilities, image, *, confidence='boundary', labels=False, logits=None, "
            "ignore=None, sigma_xy=None, sigma_luma=16.0, sigma_chroma=8.0, smoothness=None, "
            "rank_tolerance=0.0001, reference_max=None, dtype=None)"
        ),
        "solve": (
            "(reference, target, confidence=None, *, sigma_xy=8, sigma_luma=8, sigma_chroma=8, "
            "smoothness=4.0, blur='paper', tolerance=0.001, max_iterations=None, "
            "preconditioner='multigrid', model='constant', slope_smoothness=3.0, "
            "slope_ridge=0.001, clamp=True, reference_max=None)"
        ),
        "solve_robust": (
            "(reference, target, confidence=None, loss=GemanMcClure(scale=1.0), iterations=8, *, "
            "sigma_xy=8, sigma_luma=8, sigma_chroma=8, smoothness=4.0, blur='paper', "
            "tolerance=0.001, max_iterations=None, preconditioner='multigrid', model='constant', "
            "slope_smoothness=3.0, slope_ridge=0.001, clamp=True, reference_max=None)"
        ),
        "superres_depth": (
            "(depth_lowres, reference, factor=None, preset='best', *, confidence=None, "
            "invalid=None, keep_holes=False, reference_max=None, dtype=None)"
        ),
        "warm_up": "(device=None, *, capability=None, progress=None)",
    },
}


def signature(thing: Any) -> str:
    """Parameters and defaults without annotations."""
    full = inspect.signature(thing)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in full.parameters.values()]
    return str(full.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def members(name: str, cls: type) -> dict[str, str]:
    """Constructor and public members that a class of this package defines or inherits."""
    if issubclass(cls, Warning):
        return {name: f"subclass of {cls.__base__.__name__}"}
    table = {name: signature(cls)}
    for base in cls.__mro__:
        for member, value in vars(base).items() if base.__module__.startswith("bilateral") else ():
            if not member.startswith("_"):
                attribute = getattr(cls, member)
                kind = signature(attribute) if callable(attribute) else type(value).__name__
                table.setdefault(f"{name}.{member}", kind)
    return table


def describe(module: str) -> dict[str, str]:
    """Names of a module that users may use, each with its signature."""
    loaded = importlib.import_module(module)
    public = getattr(loaded, "__all__", None) or [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    ]
    table: dict[str, str] = {}
    for name in public:
        value = getattr(loaded, name)
        if inspect.isclass(value):
            table |= members(name, value)
        else:
            table[name] = signature(value) if callable(value) else type(value).__name__
    return table


@pytest.mark.parametrize("module", API)
def test_names_parameters_and_defaults(module: str) -> None:
    if module == "bilateral.torch":
        pytest.importorskip("torch", reason="the layer needs PyTorch")
    if module == "bilateral.dask":
        pytest.importorskip("dask", reason="the module needs Dask")
    assert describe(module) == API[module]


def test_the_version_is_the_installed_one() -> None:
    assert bilateral.__version__ == version("bilateral")


def test_attributes_of_objects() -> None:
    grid = bilateral.BilateralGrid([[0.0, 1.0]])
    assert (grid.shape, grid.n_vertices) == ((1, 2), 2)
    solver = bilateral.BilateralSolver(grid, 3.0, tolerance=1e-4, max_iterations=9)
    assert solver.grid is grid
    assert (solver.smoothness, solver.tolerance, solver.max_iterations) == (3.0, 1e-4, 9)
    blocks = bilateral.BlockMeans([[1.0, 2.0]], (2, 4))
    assert blocks.shape == (2, 4)
    np.testing.assert_array_equal(blocks.low, [[1, 2]])
    np.testing.assert_array_equal(blocks.weights, [[1, 1]])
