"""Complete the depth of few points to a dense map, with the photograph."""

from bilateral.tasks.completion.complete import complete_depth

__all__ = ["complete_depth"]
