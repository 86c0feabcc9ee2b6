"""Read and write the frames of video files, one at a time, with PyAV (FFmpeg)."""

import os
from pathlib import Path

from bilateral.io.errors import MissingPackageError

SUFFIXES = (".mkv", ".mp4", ".mov", ".m4v", ".avi", ".webm")
LOSSLESS = ".mkv"
"""Suffix of videos that store depth: FFV1 in Matroska."""
WRITTEN = (".mkv", ".mp4", ".mov")

__all__ = ["LOSSLESS", "SUFFIXES", "WRITTEN", "is_video", "missing_package"]


def is_video(path: str | os.PathLike[str]) -> bool:
    """Return whether the suffix of a path is that of a video."""
    return Path(path).suffix.lower() in SUFFIXES


def missing_package() -> MissingPackageError:
    """Return the error for a missing PyAV."""
    return MissingPackageError('video files need PyAV: pip install "bilateral[video]"')
