"""What operators of models are in the language."""
