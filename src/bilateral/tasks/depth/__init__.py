"""Refinement of depth and disparity maps."""

from bilateral.tasks.depth.refine import refine_depth
from bilateral.tasks.depth.video.stream import DepthStream

__all__ = ["DepthStream", "refine_depth"]
