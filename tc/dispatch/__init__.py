"""From the arrays of a call to where its kernel runs."""
