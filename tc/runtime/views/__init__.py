"""What the runtime knows of an array, and scalars."""
