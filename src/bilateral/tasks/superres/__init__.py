"""Super-resolution of depth maps."""

from bilateral.tasks.superres.depth import superres_depth

__all__ = ["superres_depth"]
