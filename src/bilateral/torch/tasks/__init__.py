"""Filters and tasks for tensors: the calls for arrays, with PyTorch's layout, on any device."""
