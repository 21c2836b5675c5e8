"""Static memory: lifetimes, the order of nodes, and offsets in one arena."""
