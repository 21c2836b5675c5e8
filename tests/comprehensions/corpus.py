"""Every comprehension printed in the paper and in the public C++ implementation, and some that use more.

Where the original prints something that this language refuses, the entry says what was changed; what is refused
as it stands is in ``refused``.
"""

from __future__ import annotations

from tests.comprehensions import (
    convolution,
    elementwise,
    embedding,
    inference,
    layout,
    linear_algebra,
    normalization,
    reduction,
    sequence,
)
from tests.comprehensions.case import Case

CASES: tuple[Case, ...] = (
    *linear_algebra.CASES,
    *convolution.CASES,
    *reduction.CASES,
    *embedding.CASES,
    *normalization.CASES,
    *elementwise.CASES,
    *layout.CASES,
    *sequence.CASES,
    *inference.CASES,
)
