"""Filter pixels on a CUDA device."""
