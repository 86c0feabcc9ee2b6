"""The C++ core. Use it through ``bilateral.ops.cpu``."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from numpy.typing import NDArray

class Grid:
    @property
    def n_vertices(self) -> int: ...
    def coarsen(self, threads: int) -> None: ...
    def bistochastize(self, centre: float, space: float, range: float, threads: int) -> None: ...
    def mass(self) -> NDArray[Any]: ...
    def coordinates(self) -> list[int]: ...
    def splat(self, pixels: NDArray[Any], out: NDArray[Any], threads: int) -> None: ...
    def slice(self, vertices: NDArray[Any], out: NDArray[Any], threads: int) -> None: ...
    def blur(self, vertices: NDArray[Any], out: NDArray[Any], threads: int) -> None: ...
    def slice_gradients(
        self,
        z: NDArray[Any],
        y: NDArray[Any],
        extra: NDArray[Any] | None,
        target: NDArray[Any],
        confidence: NDArray[Any] | None,
        of_target: NDArray[Any] | None,
        of_confidence: NDArray[Any] | None,
        threads: int,
    ) -> None: ...
    def smoothness_product(self, x: NDArray[Any], y: NDArray[Any], threads: int) -> float: ...
    def rms(self, vertices: NDArray[Any], out: NDArray[Any]) -> None: ...
    def splat_target(
        self,
        target: NDArray[Any],
        confidence: NDArray[Any] | None,
        weight: NDArray[Any],
        weighted: NDArray[Any],
        threads: int,
    ) -> tuple[int, float, list[float], list[float], int | None]: ...
    def start(
        self,
        weight: NDArray[Any],
        weighted: NDArray[Any],
        pyramid: bool,
        x: NDArray[Any],
        threads: int,
    ) -> None: ...
    def push_pull(self, vertices: NDArray[Any], out: NDArray[Any], threads: int) -> None: ...
    def nested_start(
        self,
        weight: NDArray[Any],
        weighted: NDArray[Any],
        smoothness: float,
        x: NDArray[Any],
        threads: int,
    ) -> None: ...
    def draw_probes(
        self,
        weight: NDArray[Any],
        smoothness: float,
        seed: int,
        b: NDArray[Any],
        threads: int,
    ) -> None: ...
    def with_data(self, weight: NDArray[Any], out: NDArray[Any]) -> None: ...

class Loss:
    @staticmethod
    def power(gain: float, rate: float, exponent: float) -> Loss: ...
    @staticmethod
    def exponential(gain: float, rate: float) -> Loss: ...
    @staticmethod
    def huber(gain: float, rate: float) -> Loss: ...

class _Samples:
    def __init__(self, grid: Grid, target: NDArray[Any], threads: int) -> None: ...
    @property
    def known(self) -> int: ...
    @property
    def size(self) -> list[float]: ...
    def splat(
        self,
        loss: Loss,
        y: NDArray[Any],
        weight: NDArray[Any],
        weighted: NDArray[Any],
        threads: int,
    ) -> float: ...

class Samples32(_Samples): ...
class Samples64(_Samples): ...

class _Solver:
    def __init__(self, grid: Grid, preconditioner: str, threads: int) -> None: ...
    def solve(
        self,
        weight: NDArray[Any],
        weighted: NDArray[Any],
        x: NDArray[Any],
        scale: Sequence[float],
        fill: bool,
        smoothness: float,
        least_steps: int,
        most_steps: int,
        tolerance: float,
        of_movement: float,
        callback: Callable[[int, float], Any] | None,
    ) -> tuple[list[float], bool, float]: ...
    def with_data(self, out: NDArray[Any]) -> None: ...

class Solver32(_Solver): ...
class Solver64(_Solver): ...

class _DomainTransform:
    @classmethod
    def of(cls, reference: NDArray[Any], step: float, level: float, threads: int) -> Self: ...
    def filter(
        self,
        image: NDArray[Any],
        mass: NDArray[Any] | None,
        iterations: int,
        out: NDArray[Any],
        threads: int,
    ) -> tuple[bool, bool]: ...

class DomainTransform32(_DomainTransform): ...
class DomainTransform64(_DomainTransform): ...

class _PixelGraph:
    @staticmethod
    def of(reference: NDArray[Any], smoothness: float, sigma: float, threads: int) -> Any: ...
    def polish(
        self,
        z: NDArray[Any],
        anchor: float,
        target: NDArray[Any] | None,
        weight: NDArray[Any] | None,
        low: NDArray[Any] | None,
        low_weight: NDArray[Any] | None,
        scale: float,
        rounds: int,
        steps: int,
        threads: int,
    ) -> None: ...

class PixelGraph32(_PixelGraph): ...
class PixelGraph64(_PixelGraph): ...

def block_means(pixels: NDArray[Any], means: NDArray[Any], threads: int) -> None: ...
def spread_blocks(values: NDArray[Any], pixels: NDArray[Any], threads: int) -> None: ...
def unchanged(
    before: NDArray[Any],
    after: NDArray[Any],
    scale: Sequence[float],
    weight: NDArray[Any],
    threads: int,
) -> None: ...
def build_grid(
    pixels: NDArray[Any],
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigma: Sequence[float],
    nominal_max: float | None,
    sigma_space: Sequence[float],
    threads: int,
) -> Grid: ...
def covariance(
    weight: NDArray[Any],
    weighted: NDArray[Any],
    mean: NDArray[Any],
    covariance: NDArray[Any],
    threads: int,
) -> None: ...
def project(
    weight: NDArray[Any],
    weighted: NDArray[Any],
    mean: NDArray[Any],
    basis: NDArray[Any],
    few: NDArray[Any],
    threads: int,
) -> None: ...
def expand(
    few: NDArray[Any], mean: NDArray[Any], basis: NDArray[Any], many: NDArray[Any], threads: int
) -> None: ...
def median(image: NDArray[Any], out: NDArray[Any], size: int, threads: int) -> None: ...
def match_blocks(
    left: NDArray[Any],
    right: NDArray[Any],
    disparities: int,
    radius: int,
    margin: float,
    out: Sequence[NDArray[Any]],
    threads: int,
) -> None: ...
def defocus(
    image: NDArray[Any],
    layers: NDArray[Any],
    radii: Sequence[float],
    blades: int,
    rotation: float,
    out: NDArray[Any],
    threads: int,
) -> None: ...
def relative_depth(labels: NDArray[Any], radius: int, out: NDArray[Any], threads: int) -> None: ...
def majority(
    labels: NDArray[Any], classes: int, radius: int, out: NDArray[Any], threads: int
) -> None: ...
def visible(
    claim: NDArray[Any],
    surface: NDArray[Any],
    trusted: NDArray[Any],
    tolerance: float,
    out: NDArray[Any],
    threads: int,
) -> None: ...
def find_regions(
    values: NDArray[Any], mask: NDArray[Any], tolerance: float, labels: NDArray[Any]
) -> int: ...
