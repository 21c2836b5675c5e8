"""The rules of operators of neural networks."""
