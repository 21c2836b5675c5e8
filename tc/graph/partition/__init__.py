"""Divides graphs into kernels."""
