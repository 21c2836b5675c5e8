"""What a machine can do at most, and what a kernel asks of it."""
