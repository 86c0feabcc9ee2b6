"""Depth from a stereo pair."""
