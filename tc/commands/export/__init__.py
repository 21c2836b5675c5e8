"""Kernels of a cache as source files that programs without Python compile and call."""
