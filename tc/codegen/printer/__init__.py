"""Printers of kernels, loops, register tiles and statements."""
