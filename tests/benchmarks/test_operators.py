"""The operators of the benchmarks compute what PyTorch's do, and what the oracle says."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from benchmarks.measuring.judge import deviation_of_ours, deviation_of_peer
from benchmarks.measuring.messages import Refused
from benchmarks.problems.operators import OPERATORS
from benchmarks.problems.problem import Problem
from tests.turns import every, one_in

torch = pytest.importorskip("torch")

# By the name of a size, what it is here.
SIZES: Final = {
    "M": 17,
    "N": 18,
    "K": 20,
    "B": 3,
    "I": 4,
    "J": 5,
    "E": 6,
    "G": 2,
    "V": 11,
    "C": 6,
    "F": 7,
    "H": 10,
    "W": 12,
    "D": 8,
    "L": 40,
    "KD": 3,
    "KH": 3,
    "KW": 3,
}
# What is otherwise for some problems: heads of the size that the scale is for, windows that fit.
OTHERS: Final = {"attention": {"D": 64}, "attention_causal": {"D": 64}, "convolution1d_strided": {"K": 3}}
PROBLEMS: Final = tuple(dict.fromkeys(case.problem.name for case in OPERATORS))


def problem(name: str) -> Problem:
    return next(case.problem for case in OPERATORS if case.problem.name == name)


def test_every_case_has_its_sizes() -> None:
    assert len({case.name for case in OPERATORS}) == len(OPERATORS) >= 100
    for case in OPERATORS:
        assert set(case.sizes) == set(case.problem.comprehension.program.sizes)


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@one_in(2)
@pytest.mark.parametrize("name", every(8, PROBLEMS))
def test_ours_and_pytorch(name: str) -> None:
    from benchmarks.peers.torch_operators import OPERATORS as CALLS

    own = problem(name)
    sizes = {size: OTHERS.get(name, {}).get(size, SIZES[size]) for size in own.comprehension.program.sizes}
    arguments = own.arguments(sizes, 3)
    expected = list(own.comprehension.oracle(*arguments.values()).values())
    found = own.comprehension(*arguments.values())
    given = [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
    assert not isinstance(deviation_of_ours(given, expected), Refused)
    if name == "linear_uint8" and not torch.cpu._is_vnni_supported():
        return  # PyTorch adds pairs of products in 16 bits, which saturate.
    peer = CALLS[name](*map(_tensor, arguments.values()))
    parts = peer if isinstance(peer, tuple) else (peer,)
    theirs = [(part.float() if part.dtype == torch.bfloat16 else part).numpy() for part in parts]
    deviation = deviation_of_peer(theirs, expected)
    assert not isinstance(deviation, Refused), deviation


@pytest.mark.parametrize("name", every(8, PROBLEMS))
def test_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    from benchmarks.peers.jax_operators import OPERATORS as CALLS

    own = problem(name)
    sizes = {size: OTHERS.get(name, {}).get(size, SIZES[size]) for size in own.comprehension.program.sizes}
    arguments = own.arguments(sizes, 3)
    expected = list(own.comprehension.oracle(*arguments.values()).values())
    found = jax.jit(CALLS[name])(*map(jax.numpy.asarray, arguments.values()))
    parts = [
        np.ascontiguousarray(np.asarray(part).astype(np.float64))
        for part in (found if isinstance(found, tuple) else (found,))
    ]
    deviation = deviation_of_peer(parts, expected)
    assert not isinstance(deviation, Refused), deviation
