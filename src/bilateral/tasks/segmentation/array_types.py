"""Find the function that refines arrays of another library, such as PyTorch tensors.

The package registers these functions, so that the tasks import no other library and look for none.
"""

from collections.abc import Callable
from typing import Any

_loaders: dict[str, Callable[[], Callable[..., Any]]] = {}


def register(array_type: str, load: Callable[[], Callable[..., Any]]) -> None:
    """Let `refine_segmentation` hand arrays of another type to another function.

    Parameters
    ----------
    array_type : str
        Name of the type with its module, such as "torch.Tensor". Subclasses count, too.
    load : function
        Returns a function with the arguments of `refine_segmentation`. It is called when the first
        array of the type arrives, and may import then.
    """
    _loaders[array_type] = load


def find_refinement(value: Any) -> Callable[..., Any] | None:
    """Return the function that was registered for the type of a value; None: there is none."""
    for base in type(value).__mro__:
        load = _loaders.get(f"{base.__module__}.{base.__qualname__}")
        if load is not None:
            return load()
    return None
