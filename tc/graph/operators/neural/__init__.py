"""What operators of neural networks are in the language."""
