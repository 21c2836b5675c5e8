"""Index-set splitting of loops: full and partial tiles, insides and borders."""
