"""Colorization of gray photographs by strokes."""

from bilateral.tasks.colorize.colorizer import Colorizer, colorize
from bilateral.tasks.colorize.video import colorize_video

__all__ = ["Colorizer", "colorize", "colorize_video"]
