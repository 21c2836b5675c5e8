"""Every case of the suite: a problem at the sizes at which it is measured, and what it must reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from benchmarks.problems.case import Case, Suite
from benchmarks.problems.operators import OPERATORS
from benchmarks.problems.problem import Array, PeerArguments, Problem
from tc.base.errors import nearest


def _joined_groups(image: Array, weights: Array, bias: Array) -> PeerArguments:
    """Libraries keep the groups of a convolution in one dimension with the channels."""
    n, groups, channels, height, width = image.shape
    _, filters, _, kernel_height, kernel_width = weights.shape
    return (
        image.reshape(n, groups * channels, height, width),
        weights.reshape(groups * filters, channels, kernel_height, kernel_width),
        bias.reshape(groups * filters),
        groups,
    )


def _joined_channels(image: Array, gamma: Array, beta: Array) -> PeerArguments:
    """Libraries keep the groups of a normalization in one dimension with the channels."""
    n, groups, channels, height, width = image.shape
    return image.reshape(n, groups * channels, height, width), gamma.reshape(-1), beta.reshape(-1), groups


TMM: Final = Problem("tmm")
TBMM: Final = Problem("tbmm")
GCONV: Final = Problem("gconv", arrange=_joined_groups)
C3: Final = Problem("c3")
MLP1: Final = Problem("mlp1")
MLP3: Final = Problem("mlp3")
LUT1: Final = Problem("lut1", indices={"I": "L"})
LUT2: Final = Problem("lut2", indices={"I1": "L1", "I2": "L2"})
GROUP_NORM: Final = Problem("group_norm", arrange=_joined_channels)
MOMENTS: Final = Problem("moments")
SOFTMAX: Final = Problem("softmax")
LAYER_NORM: Final = Problem("layer_norm")
KRONECKER: Final = Problem("kronecker")
CUMSUM_ROWS: Final = Problem("cumsum_rows")
CUMSUM_COLUMNS: Final = Problem("cumsum_columns")

PROBLEMS: Final = (
    *(TMM, TBMM, GCONV, C3, MLP1, MLP3, LUT1, LUT2),
    *(GROUP_NORM, MOMENTS, SOFTMAX, LAYER_NORM, KRONECKER, CUMSUM_ROWS, CUMSUM_COLUMNS),
)


def _tmm(suite: Suite, m: int, k: int, n: int, minimum: float) -> Case:
    return Case(f"tmm-{m}-{k}-{n}", suite, TMM, {"M": m, "K": k, "N": n}, minimum)


def _gconv(channels: int, side: int, minimum: float) -> Case:
    sizes = {"N": 32, "G": 32, "F": channels, "C": channels, "H": side, "W": side, "KH": 3, "KW": 3}
    return Case(f"gconv-{channels}", Suite.PAPER, GCONV, sizes, minimum)


def _group_norm(name: str, n: int, side: int, minimum: float) -> Case:
    return Case(name, Suite.MODERN, GROUP_NORM, {"N": n, "G": 32, "D": 512 // 32, "H": side, "W": side}, minimum)


CASES: Final = (
    _tmm(Suite.PAPER, 128, 32, 256, 1.4),
    _tmm(Suite.PAPER, 128, 1024, 1024, 1.05),
    _tmm(Suite.PAPER, 128, 4096, 16384, 1.05),
    Case("tbmm", Suite.PAPER, TBMM, {"B": 500, "N": 26, "M": 72, "K": 26}, 1.6),
    _gconv(4, 56, 8.0),
    _gconv(8, 28, 1.5),
    _gconv(16, 14, 1.15),
    _gconv(32, 7, 1.2),
    Case("lut1", Suite.PAPER, LUT1, {"E": 10**6, "D": 64, "B": 128, "K": 50}, 1.1),
    Case("lut2", Suite.PAPER, LUT2, {"E1": 10**6, "E2": 10**6, "D": 64, "B": 128, "K1": 50, "K2": 50}, 1.3),
    Case("c3", Suite.PAPER, C3, {"B": 128, "WX": 1024, "WY": 1000}, 1.05),
    Case("mlp1", Suite.PAPER, MLP1, {"B": 128, "M": 2000, "N": 128}, 1.1),
    Case("mlp3", Suite.PAPER, MLP3, {"B": 128, "N": 128, "O": 64, "P": 32, "Q": 2}, 2.0),
    _tmm(Suite.MODERN, 1024, 1024, 1024, 1.05),
    _group_norm("group-norm-large", 32, 48, 1.5),
    _group_norm("group-norm-small", 4, 12, 1.3),
    Case("moments-large", Suite.MODERN, MOMENTS, {"N": 1024, "K": 36864}, 1.0),
    Case("moments-small", Suite.MODERN, MOMENTS, {"N": 128, "K": 2304}, 1.1),
    Case("softmax", Suite.MODERN, SOFTMAX, {"N": 4096, "D": 4096}, 1.6),
    Case("layer-norm", Suite.MODERN, LAYER_NORM, {"N": 4096, "D": 1024}, 1.2),
    Case("kronecker", Suite.MODERN, KRONECKER, {"M": 256, "N0": 32, "N1": 32, "N2": 32, "D2": 16}, 1.0),
)
# Those of which no searches are recorded.
FURTHER_CASES: Final = (
    Case("cumsum-rows", Suite.LANGUAGE, CUMSUM_ROWS, {"M": 256, "N": 1024}, 1.0),
    Case("cumsum-long-rows", Suite.LANGUAGE, CUMSUM_ROWS, {"M": 16, "N": 1 << 20}, 1.0),
    Case("cumsum-columns", Suite.LANGUAGE, CUMSUM_COLUMNS, {"M": 256, "N": 1024}, 1.0),
)


def chosen(suites: Iterable[Suite], names: Iterable[str] = ()) -> tuple[Case, ...]:
    """The cases of the suites; of these, if there are names, the cases and the cases of the problems called so.

    ValueError, with the nearest name, for one that no case of the suites has.
    """
    wanted, among = frozenset(names), frozenset(suites)
    of_suites = [case for case in (*CASES, *FURTHER_CASES, *OPERATORS) if case.suite in among]
    known = {name for case in of_suites for name in (case.name, case.problem.name)}
    for name in sorted(wanted - known):
        guess = nearest(name, known)
        hint = f"did you mean {guess!r}?" if guess else f"known: {', '.join(case.name for case in of_suites)}"
        raise ValueError(f"no case is called {name!r}; {hint}")
    return tuple(case for case in of_suites if not wanted or {case.name, case.problem.name} & wanted)


def case_called(name: str) -> Case:
    """The case called ``name``; KeyError if there is none."""
    return {case.name: case for case in (*CASES, *FURTHER_CASES, *OPERATORS)}[name]
