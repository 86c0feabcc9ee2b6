"""The paper's applications, each a short recipe over the solver."""

from bilateral.tasks.superres import superres_depth

__all__ = ["superres_depth"]
