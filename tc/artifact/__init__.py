"""A compiled kernel and its calling convention, as data that a cache keeps."""
