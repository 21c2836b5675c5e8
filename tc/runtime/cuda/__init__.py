"""The CUDA driver, NVRTC, streams and launches."""
