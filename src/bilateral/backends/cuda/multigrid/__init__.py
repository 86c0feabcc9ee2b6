"""Precondition by multigrid on a CUDA device: the hierarchy of levels, and its V-cycle."""
