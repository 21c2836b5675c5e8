"""Kernels as source files that programs without Python compile and call."""
