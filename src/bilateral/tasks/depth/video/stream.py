"""Refine the frames of a live depth camera, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.filters import video
from bilateral.tasks.depth.depth_input import DepthInput, depth_input
from bilateral.tasks.depth.frame import Frame, refine_frame
from bilateral.tasks.depth.noise import Noise
from bilateral.tasks.depth.video import camera_noise
from bilateral.tasks.depth.video.averaging import TemporalAverage
from bilateral.tasks.depth.video.calming import Calming

Array = NDArray[Any]


class DepthStream:
    """Refine a live depth video: one frame in, one frame out.

    Each frame is refined like a map by `refine_depth`, but faster. Then it is averaged with up to
    five frames before, along the motion of the camera, at pixels whose photograph and depth did
    not change. Moving things, and all pixels after a cut to another scene, start anew. Changes of
    exposure count as such, not as motion. Frames should follow each other by at most some 100 ms.

    The stream stores the last frames in some 22 bytes per pixel, whatever its length. A stream
    belongs to one camera and is not safe to use from several threads at once.

    Parameters
    ----------
    invalid : float or floats, optional
        Values of the depth that mean "unknown", such as 0 in many cameras.
    reference_max : float, optional
        Value of white in the photographs. Default: 255, 65535 or 1, by their dtype.
    dtype : dtype, optional
        Dtype of the results. Default: that of each map. Integer results are rounded.

    See Also
    --------
    refine_depth : Refines single maps, and videos whose future is known.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> stream = bilateral.tasks.DepthStream(invalid=0)
    >>> photo = np.full((40, 60, 3), 90, np.uint8)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(5):  # frames of a camera, in millimetres
    ...     depth = rng.normal(2000, 10, (40, 60)).astype(np.uint16)
    ...     refined = stream.push(depth, photo)
    >>> refined.dtype, bool(np.abs(refined - 2000.0).max() < 20)
    (dtype('uint16'), True)
    """

    def __init__(
        self,
        *,
        invalid: float | Sequence[float] | None = None,
        reference_max: float | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._invalid = validation.number_list("invalid", invalid)
        self._reference_max = (
            None if reference_max is None else validation.positive("reference_max", reference_max)
        )
        self._dtype = None if dtype is None else validation.result_dtype(dtype)
        self.reset()

    def reset(self) -> None:
        """Forget all frames, for example before those of another camera."""
        self._average, self._calming = TemporalAverage(smooth=True), Calming()
        self._shape: tuple[int, int] | None = None
        self._last: tuple[NDArray[np.float32], Noise] | None = None  # refined frame
        self._frames = 0  # of the current scene
        self._noises: list[Noise] = []

    @validation.keywords(photo="reference", target="depth")
    def push(
        self,
        depth: ArrayLike,
        reference: ArrayLike,
        confidence: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Array:
        """Refine the next frame.

        Parameters
        ----------
        depth : (H, W) array
            Depth in any unit and real dtype, larger for farther points. A value that is not finite
            is unknown. A frame without any known pixel repeats the one before.
        reference : (H, W) or (H, W, 3) array
            The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
        confidence : (H, W) array, optional
            Weight of each pixel's value relative to the others, on any scale; 0 for unknown.
        mask : (H, W) array of bool or integers, optional
            0 where the map is unknown.

        Returns
        -------
        (H, W) array
            Finite everywhere.
        """
        validation.depth_not_swapped("push", "depth", depth, reference)
        guide = validation.reference(reference, self._reference_max)
        shape = guide.pixels.shape[:2]
        validation.same_frame_shape(shape, self._shape)
        checked = depth_input(depth, shape, confidence, mask, self._invalid, self._dtype)
        frame = self._refined(checked, guide)
        averaged = self._average.push(frame, checked.z, video.photo(*guide))
        x = self._calming.push(averaged)
        self._shape, self._last = shape, (frame.x, frame.noise)
        self._frames = 1 if averaged.speed is None else self._frames + 1
        # A copy, since the stream keeps its results to calm the next frames.
        return validation.as_dtype(x.reshape(checked.shape).copy(), checked.dtype)

    def _refined(self, given: DepthInput, guide: validation.Reference) -> Frame:
        """Refine a frame by itself; without any data, repeat the frame before."""
        z, known = given.z, np.isfinite(given.z)
        if self._last is None:
            validation.some_known("depth", known)
            validation.warn_of_zeros("depth", z, known, stacklevel=5)
        elif not known.any():
            x, noise = self._last
            return Frame(x, z, np.zeros_like(known), noise)
        return refine_frame(z, guide, given.trust, fast=True, noise=self._noise(given))

    def _noise(self, given: DepthInput) -> Noise:
        """Return the noise of the camera."""
        if camera_noise.is_due(self._frames):
            self._noises = camera_noise.remember(self._noises, given.noise())
        return camera_noise.joint_noise(self._noises)
