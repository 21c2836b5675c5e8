"""The search space of a kernel: genes, values, legality, starts."""
