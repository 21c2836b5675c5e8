"""Where the threads of a block must wait for each other."""
