"""Source to binary to launch."""
