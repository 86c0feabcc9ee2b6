"""Filters on pixels, applied before and after a solve."""
