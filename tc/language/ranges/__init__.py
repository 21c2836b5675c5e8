"""Range inference, and the inlining of calls that it decides about."""
