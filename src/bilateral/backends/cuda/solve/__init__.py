"""Solve systems by preconditioned conjugate gradients on a CUDA device."""
