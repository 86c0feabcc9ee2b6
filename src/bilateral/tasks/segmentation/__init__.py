"""Refine a semantic segmentation: move the borders of its regions to the edges of a photograph."""

from bilateral.tasks.segmentation.refine import refine_segmentation

__all__ = ["refine_segmentation"]
