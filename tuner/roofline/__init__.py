"""The roofline model: peak performance of machines, and the least work of kernels."""
