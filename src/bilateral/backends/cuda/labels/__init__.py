"""Analyse and edit label maps on a CUDA device."""
