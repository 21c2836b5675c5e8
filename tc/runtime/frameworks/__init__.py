"""Arrays of NumPy, PyTorch, JAX, CuPy and PyCUDA in and out."""
