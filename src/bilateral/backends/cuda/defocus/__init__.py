"""Shallow depth of field on a CUDA device."""
