"""Reading, writing, merging, pruning and shipping what a cache holds."""
