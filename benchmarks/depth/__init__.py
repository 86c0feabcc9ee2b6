"""Depth refinement against OpenCV's filters, on stereo maps and on scenes with thin structures."""
