"""Measurements of the library, outside its tests."""
