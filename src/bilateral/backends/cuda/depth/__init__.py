"""Depth maps of cameras on CUDA devices: the kernels of `core/depth/`."""
