"""Models as programs in C and CUDA, which run without Python."""
