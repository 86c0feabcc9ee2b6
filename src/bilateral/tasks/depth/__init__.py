"""Refine depth maps."""
