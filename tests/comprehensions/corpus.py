"""Every comprehension printed in the paper and in the public C++ implementation, and some that use more.

Where the original prints something that this language refuses, the entry says what was changed; what is refused
as it stands is in ``refused``.
"""

from __future__ import annotations

from tests.comprehensions import (
    bands,
    coherence,
    contraction,
    convolution,
    convolution_gradients,
    convolution_variants,
    corner_cases,
    cumulative,
    elementwise,
    embedding,
    inference,
    layout,
    linear_algebra,
    minimum,
    normalization,
    overlapping,
    perceptron,
    pooling,
    quantized,
    recurrence,
    reduction,
    scatters,
    sequence,
    softmax,
    wavenet,
)
from tests.comprehensions.case import Case

CASES: tuple[Case, ...] = (
    *linear_algebra.CASES,
    *contraction.CASES,
    *convolution.CASES,
    *convolution_variants.CASES,
    *convolution_gradients.CASES,
    *reduction.CASES,
    *pooling.CASES,
    *quantized.CASES,
    *minimum.CASES,
    *embedding.CASES,
    *perceptron.CASES,
    *normalization.CASES,
    *softmax.CASES,
    *elementwise.CASES,
    *corner_cases.CASES,
    *layout.CASES,
    *sequence.CASES,
    *cumulative.CASES,
    *recurrence.CASES,
    *coherence.CASES,
    *wavenet.CASES,
    *inference.CASES,
    *bands.CASES,
    *overlapping.CASES,
    *scatters.CASES,
)
