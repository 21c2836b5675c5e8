"""Search strategies: ask for candidates, tell what came of them."""
