"""Passes for processors: register tiles, packing, parallel loops."""
