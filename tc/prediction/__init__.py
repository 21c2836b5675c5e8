"""The time of kernels on devices that need not be there, from what they ask for."""
