"""Colorization of gray photographs by strokes."""

from bilateral.tasks.colorize.colorizer import Colorizer, colorize

__all__ = ["Colorizer", "colorize"]
