"""Build the simplified bilateral grid of an image, a video or any per-pixel features."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.backends import cpu
from bilateral.numerics import policy

Array = NDArray[Any]

STATE_VERSION = 1
"""Changes whenever an entry of a pickled grid changes its meaning."""


class BilateralGrid:
    """The simplified bilateral grid: the vertices that a reference occupies in bilateral space.

    A pixel at (x, y) with luma Y and chroma U, V belongs to the vertex ``floor(x / sigma_xy),
    floor(y / sigma_xy), floor(Y / sigma_luma), floor(U / sigma_chroma), floor(V / sigma_chroma)``.
    A value on the border of two cells, up to rounding, belongs to the upper cell. A gray reference
    has no chroma; a video also has ``floor(t / sigma_t)``. Use `from_features` for features other
    than colours. Building the grid dominates the time of an easy solve: keep the grid when one
    reference serves many targets. A grid can be pickled: the pickle holds the reference and about 1
    byte per pixel and 4 bytes per vertex.

    Parameters
    ----------
    reference : (H, W) or (H, W, 3) array
        Gray or RGB; uint8, uint16 or floating point, with white at 255, 65535 or 1. The grid keeps
        a reference to the array, because a solve with `smooth` reads it again. With `sigma_t`, a
        video (T, H, W) or (T, H, W, 3).
    sigma_xy : float
        Size of a cell in pixels.
    sigma_luma, sigma_chroma : float
        Size of a cell in 8-bit grey levels.
    blur : {"paper", "uniform"} or (centre, space, range)
        Weights of B-bar: its diagonal, its entries between neighbours along x, y and t, and its
        entries between neighbours along luma and chroma. "paper" is (2, 1, 1/8), "uniform" is
        (2 d, 1, 1) in d dimensions.
    sigma_t : float, optional
        Size of a cell in frames. By default the reference is one image.
    reference_max : float, optional
        The reference value of white, if it is not the dtype's default. Without it, floating-point
        values above 1.5 or below -0.5 are an error.

    Attributes
    ----------
    n_vertices : int
    shape : tuple of int
        Height and width of the reference; a video or volume has its length first.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral import BilateralGrid
    >>> grid = BilateralGrid(np.zeros((16, 24), np.uint8))
    >>> grid.n_vertices, grid.shape
    (6, (16, 24))
    >>> grid.splat(np.ones((16, 24))).tolist()
    [64.0, 64.0, 64.0, 64.0, 64.0, 64.0]
    """

    @validation.keywords(photo="reference")
    def __init__(
        self,
        reference: ArrayLike,
        sigma_xy: float = 8,
        sigma_luma: float = 8,
        sigma_chroma: float = 8,
        blur: str | tuple[float, float, float] = "paper",
        *,
        sigma_t: float | None = None,
        reference_max: float | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "sigma_xy": sigma_xy,
            "sigma_luma": sigma_luma,
            "sigma_chroma": sigma_chroma,
            "blur": blur,
            "sigma_t": sigma_t,
            "reference_max": reference_max,
        }
        image = validation.reference(reference, reference_max, video=sigma_t is not None)
        channels = image.pixels.shape[-1]
        luma = validation.positive("sigma_luma", sigma_luma)
        chroma = validation.positive("sigma_chroma", sigma_chroma)
        space = [validation.positive("sigma_xy", sigma_xy)] * 2
        if sigma_t is not None:
            space.insert(0, validation.positive("sigma_t", sigma_t))
        self._reference: validation.Reference | None = image
        self._change_scale = [255 / image.highest / luma] * channels
        matrix, offset = color.feature_map(channels, image.highest)
        sigmas = (luma, chroma, chroma)[:channels]
        self._build("reference", image.pixels, matrix, offset, sigmas, image.highest, space, blur)

    @classmethod
    def from_features(
        cls,
        features: ArrayLike,
        sigmas: float | Sequence[float],
        sigma_space: float | Sequence[float],
        *,
        blur: str | tuple[float, float, float] = "paper",
    ) -> Self:
        """Build the grid of an image, a video or a volume from any per-pixel features.

        Features may be infrared and depth, normals, or activations of a network. Pixels share a
        vertex if all their features and coordinates fall into the same cells,
        ``floor(feature / sigma)``.

        Parameters
        ----------
        features : (H, W, C) or (T, H, W, C) array
            Zero to eight features per pixel, in any unit. No colour conversion takes place. One
            feature may come without the last axis: (H, W), or (T, H, W) if `sigma_space` has three
            numbers.
        sigmas : float or C floats
            Size of a cell in each feature's unit.
        sigma_space : float or 2 or 3 floats
            Size of a cell in pixels: one number for all axes, or one per axis, (y, x) or (t, y, x).
        blur : {"paper", "uniform"} or (centre, space, range)
            Weights of B-bar, as for an image; t counts as a spatial axis.

        Returns
        -------
        BilateralGrid

        Examples
        --------
        A video of infrared and depth, in their own units:

        >>> import numpy as np
        >>> from bilateral import BilateralGrid, BilateralSolver
        >>> infrared, depth = np.full((2, 6, 32, 48), 0.3)
        >>> depth[:, :, 24:] = 2.5
        >>> features = np.stack([infrared, depth], axis=-1)
        >>> grid = BilateralGrid.from_features(features, (0.05, 0.2), (3, 8, 8))
        >>> grid.n_vertices, grid.shape
        (48, (6, 32, 48))
        >>> target = np.full(grid.shape, np.nan)
        >>> target[0, 0, 0], target[0, 0, 47] = 10, 20
        >>> BilateralSolver(grid).solve(target)[5, 31, [0, 23, 24, 47]].round(2).tolist()
        [10.0, 10.0, 20.0, 20.0]
        """
        checked = validation.features(features, sigmas, sigma_space)
        grid = cls.__new__(cls)
        grid._options = {"sigmas": sigmas, "sigma_space": sigma_space, "blur": blur}
        grid._reference = None
        grid._change_scale = [1 / sigma for sigma in checked.sigmas]
        channels = len(checked.sigmas)
        grid._build(
            "features",
            checked.pixels,
            np.eye(channels),
            np.zeros(channels),
            checked.sigmas,
            None,
            checked.sigma_space,
            blur,
        )
        return grid

    def _build(
        self,
        name: str,
        pixels: Array,
        matrix: NDArray[np.float64],
        offset: NDArray[np.float64],
        sigmas: Sequence[float],
        highest: float | None,
        sigma_space: Sequence[float],
        blur: str | tuple[float, float, float],
    ) -> None:
        weights = validation.blur(blur, len(sigma_space) + len(sigmas))
        self._planes: cpu.Planes | None = None
        self.shape: tuple[int, ...] = pixels.shape[:-1]
        self._features = pixels
        # n B-bar n depends only on the ratios of the weights: scale them to at most 1.
        self._blur_unit = max(weights)
        centre, space, range_ = (weight / self._blur_unit for weight in weights)
        try:
            self._core = cpu.build_grid(
                pixels,
                matrix,
                offset,
                sigmas,
                highest,
                sigma_space,
                blur=(centre, space, range_),
                edge_guard=policy.EDGE_GUARD,
                lowest_eigenvalue=policy.LOWEST_EIGENVALUE,
                level_stiffness=policy.LEVEL_STIFFNESS,
                faint_epsilons=policy.FAINT_EPSILONS,
            )
        except cpu.PixelError as error:
            validation.finite_values(name, pixels)
            raise ValueError(f"{name}: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        reference = state.pop("_reference")
        state.pop("_planes")
        state["highest"] = None if reference is None else reference.highest
        state["core"] = cpu.grid_state(state.pop("_core"))
        return {"version": STATE_VERSION, **state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name, options = "BilateralGrid", ("_options", "_change_scale", "_blur_unit")
        entries = ("core", "highest", "_features", *options)
        restored = validation.state(name, state, STATE_VERSION, entries)
        core, highest = restored.pop("core"), restored.pop("highest")
        self._core = cpu.grid_from_state(
            core,
            lowest_eigenvalue=policy.LOWEST_EIGENVALUE,
            level_stiffness=policy.LEVEL_STIFFNESS,
            faint_epsilons=policy.FAINT_EPSILONS,
        )
        axes = ("t_cell", "y_cell", "x_cell")[-core["space_dimensions"] :]
        shape, channels = tuple(len(core[axis]) for axis in axes), len(core["key_bits"])
        pixels = validation.state_features(name, restored["_features"], shape, (channels,))
        validation.state_numbers(name, restored["_change_scale"], channels)
        validation.state_numbers(name, [restored["_blur_unit"]], 1)
        self._planes = None
        self._reference = None
        if highest is not None:
            (highest,) = validation.state_numbers(name, [highest], 1)
            self._reference = validation.Reference(pixels, highest)
        vars(self).update(restored, shape=shape, _features=pixels)

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self._core.n_vertices

    def __repr__(self) -> str:
        return f"BilateralGrid(shape={self.shape}, n_vertices={self.n_vertices})"

    def splat(self, pixels: ArrayLike) -> Array:
        """Compute S p: sum the pixels of each vertex.

        Parameters
        ----------
        pixels : (H, W) or (H, W, K) array
            A video or volume has an axis T before H.

        Returns
        -------
        (n_vertices,) or (n_vertices, K) array
        """
        return cpu.splat(
            self._core, validation.pixel_values("pixels", pixels, self.shape), self.shape
        )

    def slice(self, vertices: ArrayLike) -> Array:
        """Compute S^T v: give every pixel the value of its vertex.

        Parameters
        ----------
        vertices : (n_vertices,) or (n_vertices, K) array

        Returns
        -------
        (H, W) or (H, W, K) array
        """
        values = validation.vertex_values("vertices", vertices, self.n_vertices)
        return cpu.slice_(self._core, values, self.shape)

    def blur(self, vertices: ArrayLike) -> Array:
        """Compute B-bar v: the centre weight times each vertex, plus its weighted neighbours.

        Parameters
        ----------
        vertices : (n_vertices,) or (n_vertices, K) array

        Returns
        -------
        array of the same shape
        """
        values = validation.vertex_values("vertices", vertices, self.n_vertices)
        blurred: Array = cpu.blur(self._core, values) * values.dtype.type(self._blur_unit)
        return blurred

    def coordinates(self) -> NDArray[np.int64]:
        """Return the cell of each vertex: x, y, (t,) then luma, U, V or the features.

        Cells of features that have negative values count from the lowest cell.

        Returns
        -------
        (n_vertices, dimensions) int64 array
        """
        return np.array(self._core.coordinates(), np.int64).reshape(self.n_vertices, -1)


def grid_of_blocks(core: cpu.Grid, shape: tuple[int, int], blur_unit: float) -> BilateralGrid:
    """Return the grid that was joined from blocks. It has no pixels: it cannot splat or slice."""
    grid = BilateralGrid.__new__(BilateralGrid)
    grid._core, grid.shape, grid._blur_unit = core, shape, blur_unit
    grid._reference = grid._planes = None
    return grid


def core_of(grid: BilateralGrid) -> cpu.Grid:
    """Return the C++ grid. For `bilateral.numerics` only."""
    return grid._core


def planes_of(grid: BilateralGrid) -> cpu.Planes:
    """Return the planar model of a grid. For `bilateral.numerics` only."""
    if grid._planes is None:
        options, axes = grid._options, len(grid.shape)
        if "sigma_space" in options:
            space = np.broadcast_to(np.asarray(options["sigma_space"], np.float64), axes).tolist()
        else:
            space = [options["sigma_xy"]] * 2
            space = space if options["sigma_t"] is None else [options["sigma_t"], *space]
        grid._planes = cpu.planes_of(grid._core, space)
    return grid._planes


def reference_of(grid: BilateralGrid) -> validation.Reference | None:
    """Return the image or video a grid was built from; None for other features."""
    return grid._reference


def rebuild(grid: BilateralGrid, reference: ArrayLike) -> BilateralGrid:
    """Build the grid of another reference with the same options."""
    make = BilateralGrid.from_features if grid._reference is None else BilateralGrid
    return make(reference, **grid._options)


def frame_change(before: BilateralGrid, after: BilateralGrid) -> Array | None:
    """Compute a weight per pixel that falls with the change of its features, in units of a cell.

    None if the two references have different shapes or dtypes, or no features.
    """
    old, new = before._features, after._features
    if old.shape != new.shape or old.dtype != new.dtype or new.shape[-1] == 0:
        return None
    return cpu.frame_change(old, new, after._change_scale)
