"""Polynomials, inequalities, extremes and folding of index expressions."""
