"""Tunes the kernels of graphs."""
