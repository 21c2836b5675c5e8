"""Search strategies: ask for candidates, tell their outcomes."""
