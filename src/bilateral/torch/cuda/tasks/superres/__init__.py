"""Super-resolution of depth maps on a CUDA device."""
