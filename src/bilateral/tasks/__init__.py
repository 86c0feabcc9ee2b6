"""What people do with the solver: one call each, from a map and a photograph to a better map."""

from bilateral.tasks.refine import refine_depth

__all__ = ["refine_depth"]
