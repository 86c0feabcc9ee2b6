"""The paper's applications, each a short recipe over the solver."""

from bilateral.tasks.defocus import defocus
from bilateral.tasks.stereo import match_blocks, stereo_depth
from bilateral.tasks.superres import superres_depth

__all__ = ["defocus", "match_blocks", "stereo_depth", "superres_depth"]
