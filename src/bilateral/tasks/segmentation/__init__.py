"""Refine segmentation."""
