"""Label maps on a CUDA device."""
