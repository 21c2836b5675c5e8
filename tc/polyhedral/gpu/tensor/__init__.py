"""Products of matrices by the matrix instructions of warps (tensor cores)."""
