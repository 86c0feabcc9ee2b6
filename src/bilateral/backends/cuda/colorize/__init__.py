"""Colorization on a CUDA device: strokes, texture, specks and colours."""
