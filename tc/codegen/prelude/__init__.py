"""The C headers that generated sources begin with."""
