"""One harness per subject: a function that draws a case, yields its calls and checks them."""

from importlib import import_module

from fuzz.call import Harness

_PLACES = {
    "solve": "solver",
    "solver": "solver",
    "robust": "solver",
    "planar": "solver",
    "variance": "solver",
    "convergence": "convergence",
    "grid": "grid",
    "features": "grid",
    "pickled": "grid",
    "domain_transform": "filters",
    "median": "filters",
    "polish": "filters",
    "confidence": "confidence",
    "refine_depth": "depth",
    "complete_depth": "depth",
    "align_depth": "depth",
    "superres_depth": "depth",
    "depth_stream": "depth",
    "colorize": "pictures",
    "segmentation": "pictures",
    "stereo": "pictures",
    "defocus": "pictures",
    "cut_out": "pictures",
    "tensors": "tensors",
    "compat": "compat",
    "blocks": "blocks",
    "files": "files",
    "exr": "files",
    "messages": "messages",
    "commands": "commands",
}

NAMES = tuple(_PLACES)


def load(name: str) -> Harness:
    """Return the harness of a name; its module is imported only now."""
    module = import_module(f"fuzz.harnesses.{_PLACES[name]}")
    harness: Harness = getattr(module, name)
    return harness
