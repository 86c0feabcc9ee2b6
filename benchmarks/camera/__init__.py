"""Measurements of depth cameras: harm, errors, steadiness in time, and speed."""
