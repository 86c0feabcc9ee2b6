"""The planar model on CUDA devices: solves, and their derivatives."""
