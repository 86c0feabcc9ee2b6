"""The operations on CUDA devices, in Triton: the same as `ops.cpu`, for batches of images.

A batch of images is one block-diagonal system. Vertices lie in the order of their images, then of
their tiles, so that an image's vertices, and at every level of the pyramid a tile's, are
consecutive. Nothing is summed by float atomics: results are the same in every run.
"""
