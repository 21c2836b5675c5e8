"""The C compiler, shared libraries, threads, memory and temporary files."""
