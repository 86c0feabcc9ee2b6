"""Refinement of depth and disparity maps."""

from bilateral.tasks.depth.refine import refine_depth

__all__ = ["refine_depth"]
