"""The proof that a mapped kernel does what its program says; it imports nothing that it checks."""
