"""Plans of graphs in the cache, which later processes run without preparing them again."""
