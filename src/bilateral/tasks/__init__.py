"""The paper's applications, each a recipe of a solver, a confidence and filters."""

from bilateral.tasks.alignment import AlignInfo, align_depth
from bilateral.tasks.colorize import Colorizer, colorize, colorize_video
from bilateral.tasks.completion import complete_depth
from bilateral.tasks.cutout import Cutter, cut_out
from bilateral.tasks.defocus import defocus
from bilateral.tasks.depth import DepthStream, refine_depth
from bilateral.tasks.segmentation import refine_segmentation
from bilateral.tasks.stereo import match_blocks, stereo_depth
from bilateral.tasks.superres import superres_depth

__all__ = [
    "AlignInfo",
    "Colorizer",
    "Cutter",
    "DepthStream",
    "align_depth",
    "colorize",
    "colorize_video",
    "complete_depth",
    "cut_out",
    "defocus",
    "match_blocks",
    "refine_depth",
    "refine_segmentation",
    "stereo_depth",
    "superres_depth",
]
