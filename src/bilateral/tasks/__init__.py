"""The paper's applications, each a short recipe over the solver."""

from bilateral.tasks.colorize.colorize import Colorizer, colorize
from bilateral.tasks.defocus import defocus
from bilateral.tasks.depth.refine import refine_depth
from bilateral.tasks.segmentation.refine import refine_segmentation
from bilateral.tasks.stereo.stereo import match_blocks, stereo_depth
from bilateral.tasks.superres.superres import superres_depth

__all__ = [
    "Colorizer",
    "colorize",
    "defocus",
    "match_blocks",
    "refine_depth",
    "refine_segmentation",
    "stereo_depth",
    "superres_depth",
]
