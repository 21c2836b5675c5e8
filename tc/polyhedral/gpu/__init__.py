"""Passes for grids of thread blocks."""
