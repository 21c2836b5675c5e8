"""The representations: scop, schedule tree, loop tree, counterexample."""
