"""Refinement of depth videos: live streams, and videos whose future is known."""
