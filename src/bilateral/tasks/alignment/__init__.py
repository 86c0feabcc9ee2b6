"""Align relative depth with metric values."""

from bilateral.tasks.alignment.align import align_depth
from bilateral.tasks.alignment.info import AlignInfo

__all__ = ["AlignInfo", "align_depth"]
