"""`help` shows the names of types, not the unions that NumPy defines them by."""

import inspect
from typing import Any

import pytest

import bilateral
from bilateral import confidence, tasks

CALLABLES: list[Any] = [
    bilateral.BilateralGrid,
    bilateral.BilateralGrid.from_features,
    bilateral.BilateralGrid.splat,
    bilateral.BilateralSolver.solve,
    bilateral.BilateralSolver.solve_robust,
    bilateral.BilateralSolver.variance,
    bilateral.BlockMeans,
    bilateral.GemanMcClure.rho,
    bilateral.domain_transform,
    bilateral.median,
    bilateral.polish,
    bilateral.solve,
    confidence.edge_aware_variance,
    confidence.from_interval,
    confidence.left_right_consistency,
    tasks.Colorizer,
    tasks.Colorizer.colorize,
    tasks.Cutter,
    tasks.Cutter.cut_out,
    tasks.align_depth,
    tasks.colorize,
    tasks.colorize_video,
    tasks.cut_out,
    tasks.defocus,
    tasks.match_blocks,
    tasks.refine_depth,
    tasks.refine_segmentation,
    tasks.stereo_depth,
    tasks.superres_depth,
]


@pytest.mark.parametrize("thing", CALLABLES, ids=lambda thing: thing.__qualname__)
def test_signatures_name_their_types(thing: Any) -> None:
    signature = str(inspect.signature(thing))
    assert "ArrayLike" in signature
    assert "numpy._typing" not in signature
