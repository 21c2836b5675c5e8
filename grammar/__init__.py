"""The grammar: text to syntax tree and back."""
