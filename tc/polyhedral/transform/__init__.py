"""Transformations that all targets share: tiling, unrolling, promotion, vectorization."""
