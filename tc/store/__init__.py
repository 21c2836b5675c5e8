"""What a process asks of its cache, and what it leaves there."""
