"""The language's own use of isl: contexts, parameters, affine functions."""
