"""Solves of CUDA tensors, recorded as CUDA graphs."""
