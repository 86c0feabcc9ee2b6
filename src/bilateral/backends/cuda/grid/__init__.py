"""The bilateral grid on a CUDA device: build, splat, slice, blur."""
