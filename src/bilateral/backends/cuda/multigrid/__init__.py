"""The multigrid preconditioner on a CUDA device."""
