"""Build the bilateral grid on a CUDA device, and splat, slice and blur with it."""
