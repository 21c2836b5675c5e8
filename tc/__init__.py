"""Tensor Comprehensions: Einstein notation compiled to proven kernels."""
