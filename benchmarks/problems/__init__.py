"""What is measured, and what it must reach."""
