"""Operators and tasks for CUDA tensors; repeated solves are recorded as CUDA graphs."""
