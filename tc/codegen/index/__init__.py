"""Index expressions as text, and the offsets that statements share."""
