"""Schedule trees to loops, and passes on loops."""
