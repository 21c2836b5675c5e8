"""Records, tables, keys, seals and versions of a cache."""
