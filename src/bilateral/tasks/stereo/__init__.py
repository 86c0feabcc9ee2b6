"""Disparities of a rectified stereo pair."""

from bilateral.tasks.stereo.block_matching import match_blocks
from bilateral.tasks.stereo.disparity import stereo_depth

__all__ = ["match_blocks", "stereo_depth"]
