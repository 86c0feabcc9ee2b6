"""Colorization against Levin et al. 2004: quality and speed."""
