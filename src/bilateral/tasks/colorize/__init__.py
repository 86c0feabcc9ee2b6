"""Colorize a photograph from strokes."""
