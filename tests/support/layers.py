"""Options of a layer, as the operators for CUDA tensors take them."""

from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.torch.options import LayerOptions

BLUR = (2.0, 1.0, 0.125)


def layer_options(
    sigmas: tuple[float, float, float], tolerance: float, max_iterations: int, preconditioner: str
) -> LayerOptions:
    """Options with the paper's blur."""
    return LayerOptions(
        GridOptions(*sigmas, BLUR, None), SolveOptions(tolerance, max_iterations, preconditioner)
    )
