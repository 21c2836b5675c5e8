"""The comprehension of a program, which keeps its kernels; the same one for equal programs."""

from __future__ import annotations

import functools

from tc.api.comprehension import Comprehension
from tc.language.program.program import Program


@functools.lru_cache(maxsize=4096)
def comprehension_of(program: Program) -> Comprehension:
    """The comprehension, called, compiled and tuned as others are."""
    return Comprehension.of(program)
