"""Loop programs to source text, for every member of the C family."""
