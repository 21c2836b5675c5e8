"""Predicted times of kernels beside measured and published ones."""
