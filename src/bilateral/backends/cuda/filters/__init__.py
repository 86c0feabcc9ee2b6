"""Filters on pixels on a CUDA device."""
