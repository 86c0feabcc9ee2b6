"""Planes instead of values at the vertices of the grid: the planar model, in Triton."""
