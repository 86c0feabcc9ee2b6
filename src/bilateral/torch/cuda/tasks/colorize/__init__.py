"""Colorization of photographs on a CUDA device."""
