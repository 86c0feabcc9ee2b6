"""What people do with the solver: each task a short recipe in a file of its own."""

from bilateral.tasks.defocus import defocus
from bilateral.tasks.stereo import match_blocks, stereo_depth

__all__ = ["defocus", "match_blocks", "stereo_depth"]
