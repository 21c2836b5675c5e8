"""SciPy's BLAS: products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy
from scipy.linalg.blas import dgemm, sgemm

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.libraries.form import Form, MatrixProduct

if TYPE_CHECKING:
    from tc.graph.ir.nodes import HostFunction


@frozen
class SciPy:
    """The BLAS that SciPy brings along."""

    @property
    def title(self) -> str:
        """See ``Library``; how many threads it has, it does not say."""
        return f"SciPy {scipy.__version__}"

    def function(self, form: Form) -> HostFunction | None:
        """Of two matrices."""
        if not isinstance(form, MatrixProduct) or len(form.left) != 2 or len(form.right) != 2:
            return None
        multiply = sgemm if form.type is ScalarType.FLOAT32 else dgemm
        shape = form.result[::-1]

        def run(operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
            # BLAS has columns one after the other: of the transposed matrices, without a copy.
            left, right, *bias = operands
            if not bias:
                return (multiply(1.0, right.T, left.T).T,)
            sums = np.empty(shape, left.dtype, order="F")
            sums.T[...] = bias[0]
            return (multiply(1.0, right.T, left.T, 1.0, sums, overwrite_c=1).T,)

        return run
