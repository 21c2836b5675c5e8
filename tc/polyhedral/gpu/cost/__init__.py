"""What a mapped kernel asks of a GPU, counted from its loops, and the time that follows: predictions without a GPU."""
