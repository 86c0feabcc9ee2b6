"""Segmentation against a dense CRF: networks' real scores, and made ones with exact truth."""
