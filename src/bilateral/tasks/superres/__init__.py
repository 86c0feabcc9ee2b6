"""Depth super-resolution."""
