"""Run the operations of `backends.cpu` on CUDA devices, for batches of images, in Triton.

A batch of images is one block-diagonal system. Vertices are sorted by image, then by a code of
their coordinates, so that the vertices of an image, and the vertices below one vertex of any level
of the pyramid, are consecutive. No sum uses floating-point atomics: every run gives the same
result.

A *room* is the number of entries that a tensor has memory for. A recorded CUDA graph serves images
with different numbers of vertices, so that tensors may have more room than entries. Only the device
knows the actual number, the *total*.
"""
