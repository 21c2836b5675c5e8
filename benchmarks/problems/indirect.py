"""Accesses that data choose: scatters beside PyTorch's ``index_add_`` and NumPy's ``bincount``, CSR beside SciPy's.

On a GPU, all of them beside PyTorch's.  Sums include what sets the result to 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import tc

Array = npt.NDArray[Any]
SEED: Final = 1
THREADS: Final = 2


class Place(Enum):
    """Where a contender works."""

    CPU = "cpu"
    CUDA = "cuda"


def placed(arrays: Iterable[Array], place: Place) -> tuple[Any, ...]:
    """The arrays as they are for the processor, and PyTorch's tensors on a GPU."""
    return tuple(arrays) if place is Place.CPU else tensors(arrays, place)


def tensors(arrays: Iterable[Array], place: Place) -> tuple[Any, ...]:
    """PyTorch's tensors; the processor's share the memory of the arrays, and PyTorch has as many threads as ours."""
    import torch

    torch.set_num_threads(THREADS)
    return tuple(torch.from_numpy(array).to(place.value) for array in arrays)


_GRADIENT: Final = "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (float(V,D) y) { y(I(b), d) +=! v(b,d) }"


@dataclass(frozen=True, slots=True)
class Rows:
    """The gradient of a lookup: ``terms`` rows of ``width`` numbers are added to some of ``rows``."""

    name: str
    terms: int
    rows: int
    width: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        index, values, result = placed(self._arguments(), place)
        f = tc.define(_GRADIENT).single()
        return lambda: f(index, values, result, out=result)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of PyTorch's; on a GPU, of the one that gives the same bits in every call, as ours does."""
        import torch

        torch.use_deterministic_algorithms(place is Place.CUDA)
        index, values, result = tensors(self._arguments(), place)
        index = index.long()
        return lambda: result.zero_().index_add_(0, index, values)

    def _arguments(self) -> tuple[Array, Array, Array]:
        random = np.random.default_rng(SEED)
        index = random.integers(0, self.rows, self.terms).astype(np.int32)
        values = random.standard_normal((self.terms, self.width), np.float32)
        return index, values, np.zeros((self.rows, self.width), np.float32)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often each of so many bins is met."""

    name: str
    terms: int
    bins: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        (numbers,) = placed((self._numbers(),), place)
        text = f"def f(int64(N) x) -> (h) {{ h(x(i)) +=! 1 where x(i) in 0:{self.bins} }}"
        f = tc.define(text).single()
        return lambda: f(numbers)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of NumPy's; on a GPU, of PyTorch's."""
        numbers = self._numbers()
        if place is Place.CPU:
            return lambda: np.bincount(numbers, minlength=self.bins)
        (tensor,) = tensors((numbers,), place)
        return lambda: tensor.bincount(minlength=self.bins)

    def _numbers(self) -> Array:
        return np.random.default_rng(SEED).integers(0, self.bins, self.terms)


_SPARSE: Final = """
def vector(int32(P) R, int32(Z) c, float(Z) v, float(N) x) -> (y) {
    y(i) +=! v(j) * x(c(j)) where j in R(i):R(i+1)
}
def matrix(int32(P) R, int32(Z) c, float(Z) v, float(N,K) x) -> (y) {
    y(i,k) +=! v(j) * x(c(j),k) where j in R(i):R(i+1)
}"""


@dataclass(frozen=True, slots=True)
class Sparse:
    """A square matrix in CSR, with about so many elements in each row, times ``columns`` columns; 0: times a vector."""

    name: str
    rows: int
    per_row: int
    columns: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        arguments = placed(self._arguments(), place)
        f = tc.define(_SPARSE)["matrix" if self.columns else "vector"]
        return lambda: f(*arguments)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of SciPy's; on a GPU, of PyTorch's."""
        if place is Place.CUDA:
            import torch

            rows, columns, elements, factor = tensors(self._arguments(), place)
            sparse = torch.sparse_csr_tensor(rows, columns, elements, size=(self.rows, self.rows))
            return lambda: sparse @ factor
        from scipy.sparse import csr_array

        bounds, column, values, x = self._arguments()
        matrix = csr_array((values, column, bounds), shape=(self.rows, self.rows))
        return lambda: matrix @ x

    def _arguments(self) -> tuple[Array, Array, Array, Array]:
        random = np.random.default_rng(SEED)
        lengths = random.poisson(self.per_row, self.rows)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        column = random.integers(0, self.rows, bounds[-1]).astype(np.int32)
        shape = (self.rows, self.columns) if self.columns else (self.rows,)
        values, x = (random.standard_normal(s, np.float32) for s in ((int(bounds[-1]),), shape))
        return bounds, column, values, x
