"""Preconditioned conjugate gradients on a CUDA device."""
