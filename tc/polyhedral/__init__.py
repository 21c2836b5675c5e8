"""``Specialization``, options and machine to a proven loop program."""
