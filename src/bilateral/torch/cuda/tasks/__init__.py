"""The recipes of tasks for CUDA tensors."""
