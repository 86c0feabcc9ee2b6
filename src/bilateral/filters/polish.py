"""Polish: remove the blocks of grid cells from a solution by smoothing on the graph of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.backends import cpu
from bilateral.filters.block_means import BlockMeans

Array = NDArray[Any]


@validation.keywords(photo="reference", depth="image")
def polish(
    image: ArrayLike,
    reference: ArrayLike,
    target: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    scale: float,
    smoothness: float = 4.0,
    sigma_rgb: float = 30.0,
    anchor: float = 0.05,
    observation: BlockMeans | None = None,
    rounds: int = 2,
    steps: int = 15,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Remove the blocks of grid cells from a solution by a few steps on the graph of pixels.

    Starts at the image and reduces ``smoothness * sum_pq near_pq exp(-sum_c |I_c(p) - I_c(q)| /
    sigma_rgb) rho(z_p - z_q) + sum_p weights_p (z_p - target_p)^2 + anchor sum_p (z_p -
    image_p)^2``. The first sum runs over all pairs of the eight neighbours, with near = 1 along
    rows and columns and 0.71 along diagonals, and ``rho(d) = scale^2 log(1 + (d / scale)^2)``
    (Cauchy's loss): differences larger than `scale` are edges and stay. `domain_transform` serves
    the same purpose and is faster.

    Parameters
    ----------
    image : (H, W) or (H, W, K) array
        The map to polish; finite.
    reference : (H, W) or (H, W, C) array
        Guide image, whose edges the result keeps: uint8, uint16 or floating point, with white at
        255, 65535 or 1.
    target : array like image, optional
        Data that the result should stay close to, such as the target of the solve. A pixel with a
        value that is not finite is unknown.
    weights : (H, W) array, optional
        Weight of each pixel of the target. Default: 1 everywhere.
    scale : float
        Size of an edge, in the image's unit.
    smoothness : float
        Weight of the smoothness term.
    sigma_rgb : float
        Contrast of an edge in 8-bit grey levels, summed over the channels of the reference.
    anchor : float
        Weight of the image itself.
    observation : BlockMeans, optional
        Low-resolution values that the result's block means should match.
    rounds : int
        Number of reweighted least-squares problems.
    steps : int
        Steps of conjugate gradients per round.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of the image. Integer results are rounded.

    Returns
    -------
    array
        Of the image's shape.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo = np.repeat(np.uint8([[20, 20, 20, 200, 200, 200]]), 4, axis=0)
    >>> noisy = photo / 10 + np.tile([[0.2, -0.2], [-0.2, 0.2]], (2, 3))
    >>> bilateral.polish(noisy, photo, scale=1)[0].round(1).tolist()
    [2.0, 2.0, 2.0, 20.0, 20.0, 20.0]
    """
    guide = validation.reference(reference, reference_max, channels=range(1, 9))
    shape = guide.pixels.shape[:2]
    checked = validation.target(image, shape, dtype, name="image")
    validation.finite_values("image", checked.values)
    data, mass = _data(target, weights, checked, shape)
    scale, anchor = validation.positive("scale", scale), validation.not_negative("anchor", anchor)
    sigma = validation.positive("sigma_rgb", sigma_rgb) * (guide.highest / 255)
    smoothness = validation.not_negative("smoothness", smoothness)
    validation.count("rounds", rounds, 0)
    validation.count("steps", steps, 0)
    if observation is not None:
        example = "bilateral.BlockMeans(low, shape)"
        validation.instance("observation", observation, BlockMeans, example)
        validation.same_shape("observation", observation.shape, "reference", shape)
    validation.finite_values("reference", guide.pixels)
    graph = cpu.pixel_graph(guide.pixels, checked.values.dtype, smoothness, sigma)
    out = np.empty_like(checked.values)
    for k in range(out.shape[2]):
        out[:, :, k] = cpu.polish(
            graph,
            np.array(checked.values[:, :, k], order="C"),
            anchor=anchor,
            target=None if data is None else np.ascontiguousarray(data[:, :, k]),
            weight=mass,
            low=None if observation is None else observation.low,
            low_weight=None if observation is None else observation.weights,
            scale=scale,
            rounds=rounds,
            steps=steps,
        )
    return validation.as_dtype(out.reshape(checked.shape), checked.dtype)


def _data(
    target: ArrayLike | None,
    weights: ArrayLike | None,
    image: validation.Target,
    shape: tuple[int, ...],
) -> tuple[Array | None, Array | None]:
    """The target in the image's dtype, and its weights, which are 0 where it is unknown."""
    if target is None:
        validation.none_without("weights", weights, "target")
        return None, None
    values = validation.target(target, shape, None).values.astype(image.values.dtype, copy=False)
    validation.same_shape("target", values.shape, "image", image.values.shape)
    known = np.asarray(np.isfinite(values).all(axis=2))
    mass = validation.pixel_weights("weights", weights, shape, values.dtype)
    return np.where(known[:, :, np.newaxis], values, 0), np.where(known, mass, 0)
