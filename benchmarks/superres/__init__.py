"""Depth super-resolution against the paper's table and its authors' output files."""
