"""Constants of colorization, which arrays and tensors share."""

STROKE_DIFFERENCE = 0.01
"""A pixel is a stroke if it differs from the gray picture by more than this fraction of white,
summed over red, green and blue."""
SUSPICIOUS_FRACTION = 0.75
"""Warn if more than this fraction of the pixels are strokes."""
MAX_GRAY_CHROMA = 2.0
"""Largest U or V of gray, in 8-bit grey levels: rounding and compression can cause it."""

FEW_PIXELS = 0.25
"""A vertex of one pixel, or of this many per pixel of a cell's side, may be a speck."""
VISIBLE = 12.0
"""Smallest difference of chroma that makes a speck, in 8-bit grey levels."""
FEW, WITHOUT_DATA, STROKED = 1, 2, 3
"""Kinds of vertices: two of specks, and those with a stroke; 0 for all others."""
SMALL_REGION = 0.3
"""A region of the picture of this many pixels per pixel of a cell's side may be a speck."""
SAME_LUMA = 16.0
"""Largest difference of luma inside such a region, between neighbours, in 8-bit grey levels."""
RADIUS = 2
CROSS = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if (y == 0) != (x == 0)]
WINDOW = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if 0 < y * y + x * x < 8]
"""Offsets of the pixels that colour a speck: a square of 5 x 5 without its corners."""
SIGMA = 32.0
"""Difference of luma, in 8-bit grey levels, that divides the weight of a pixel by e."""
LEAST_MASS = 1.0
"""Sum of weights that colours a pixel in the first round: similar pixels come first."""
MAX_LEVEL = 1024.0
"""Luma is clipped here, so that no weight vanishes in float32."""


def few_pixels(cell: float) -> float:
    """Return the most pixels of a vertex that may be a speck, for cells of so many pixels."""
    return max(1.0, FEW_PIXELS * cell)


def small_region(cell: float) -> float:
    """Return the most pixels of a region of the picture that may be a speck."""
    return max(1.0, SMALL_REGION * cell)
