"""Promotion to shared memory, to registers and to the lanes of a warp."""
