"""Kernels of a cache as a folder of source files."""
