"""Smoothing on the graph of pixels: no blocks, and edges where the reference has them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.backends import cpu
from bilateral.numerics.observation import BlockMeans

Array = NDArray[Any]


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
    """Take away what a grid's cells leave in a solution, by a few steps on the pixels themselves.

    Goes from the image towards the z that minimizes ``smoothness * sum_pq near_pq exp(-sum_c
    |I_c(p) - I_c(q)| / sigma_rgb) rho(z_p - z_q) + sum_p weights_p (z_p - target_p)^2 + anchor
    sum_p (z_p - image_p)^2``, over all pairs of the eight neighbours, with near = 1 along rows and
    columns and 0.71 along diagonals, and ``rho(d) = scale^2 log(1 + (d / scale)^2)``: a difference
    of more than `scale` is an edge, which stays. `domain_transform` is the fast choice for the
    same end.

    Parameters
    ----------
    image : (H, W) or (H, W, K) array
        Where to start; finite.
    reference : (H, W) or (H, W, C) array
        Whose edges to keep: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    target : array like image, optional
        Values to be near to, such as the map that was solved for. One that is not finite counts as
        unknown.
    weights : (H, W) array, optional
        How much each pixel of the target counts; 1 everywhere if left out.
    scale : float
        The size of an edge, in the image's unit.
    smoothness : float
        How much smoothness counts.
    sigma_rgb : float
        In 8-bit grey levels, summed over the channels; a larger difference is an edge.
    anchor : float
        How much the image itself counts.
    observation : BlockMeans, optional
        Low-resolution values that the result's block means should match.
    rounds : int
        How often the weights of rho are renewed.
    steps : int
        Steps of conjugate gradients in each round.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.
    dtype : dtype, optional
        The result's, if not the image's. Integer results are rounded.

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
    wanted = validation.target(image, shape, dtype, name="image")
    validation.finite_values("image", wanted.values)
    known, mass = _data(target, weights, wanted, shape)
    scale, anchor = validation.positive("scale", scale), validation.not_negative("anchor", anchor)
    sigma = validation.positive("sigma_rgb", sigma_rgb) * (guide.highest / 255)
    smoothness = validation.not_negative("smoothness", smoothness)
    validation.count("rounds", rounds, 0)
    validation.count("steps", steps, 0)
    if observation is not None:
        validation.same_shape("observation", observation.shape, "reference", shape)
    validation.finite_values("reference", guide.pixels)
    graph = cpu.pixel_graph(guide.pixels, wanted.values.dtype, smoothness, sigma)
    out = np.empty_like(wanted.values)
    for k in range(out.shape[2]):
        out[:, :, k] = cpu.polish(
            graph,
            np.array(wanted.values[:, :, k], order="C"),
            anchor=anchor,
            target=None if known is None else np.ascontiguousarray(known[:, :, k]),
            weight=mass,
            low=None if observation is None else observation.low,
            low_weight=None if observation is None else observation.weights,
            scale=scale,
            rounds=rounds,
            steps=steps,
        )
    return validation.as_dtype(out.reshape(wanted.shape), wanted.dtype)


def _data(
    target: ArrayLike | None,
    weights: ArrayLike | None,
    wanted: validation.Target,
    shape: tuple[int, ...],
) -> tuple[Array | None, Array | None]:
    """The target in the image's dtype, and its weights: 0 where it is unknown."""
    if target is None:
        validation.none_without("weights", weights, "target")
        return None, None
    values = validation.target(target, shape, None).values.astype(wanted.values.dtype, copy=False)
    validation.same_shape("target", values.shape, "image", wanted.values.shape)
    known = np.asarray(np.isfinite(values).all(axis=2))
    given = validation.pixel_weights("weights", weights, shape, values.dtype)
    return np.where(known[:, :, np.newaxis], values, 0), np.where(known, given, 0)
