"""From the pair itself: our matching against OpenCV's SGBM, with the same refinement behind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import middlebury
from benchmarks.depth.cases import Case, errors
from benchmarks.timing import clock
from bilateral.tasks import match_blocks, refine_depth, stereo_depth

WAYS = ("SGBM, refined", "stereo_depth", "stereo_depth, refined", "match_blocks, refined")


def compare(folder: Path) -> Iterator[dict[str, Any]]:
    """Errors of each way, scene by scene."""
    for scene in middlebury.folders(folder):
        views = middlebury.photograph(scene), middlebury.right_view(scene)
        most = middlebury.most_disparity(scene)
        if not (scene / "disp0_sgbm_u16x256.png").exists() or views[1] is None or most is None:
            continue
        sgbm = middlebury.disparity(scene, "disp0_sgbm")
        seconds, solved = clock(stereo_depth, *views, most)
        matched = np.nan_to_num(match_blocks(*views, most)[0])
        truth, seen = middlebury.truth(scene), middlebury.seen_by_both(scene)
        case = Case(scene.name, "pair", views[0], sgbm, truth, seen)
        maps = [refine_depth(z, views[0], preset="stereo") for z in (sgbm, solved, matched)]
        found = dict(zip(WAYS, (maps[0], solved, *maps[1:]), strict=True))
        yield {
            "scene": scene.name,
            "max_disparity": most,
            "seconds": seconds,
            **{way: errors(disparity, case) for way, disparity in found.items()},
        }
