"""Cut an object out of a photograph by scribbles."""

from bilateral.tasks.cutout.cutter import Cutter, cut_out

__all__ = ["Cutter", "cut_out"]
