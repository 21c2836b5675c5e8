"""The problems of the benchmarks at small ragged sizes."""

from __future__ import annotations

from benchmarks.problems.case import Case, Suite
from benchmarks.problems.cases import PROBLEMS
from benchmarks.problems.problem import Sizes

SIZES: dict[str, Sizes] = {
    "tmm": {"M": 7, "K": 129, "N": 5},
    "tbmm": {"B": 3, "N": 7, "M": 13, "K": 5},
    "gconv": {"N": 2, "G": 3, "F": 5, "C": 2, "H": 7, "W": 9, "KH": 3, "KW": 3},
    "c3": {"B": 7, "WX": 33, "WY": 5},
    "mlp1": {"B": 3, "M": 129, "N": 7},
    "mlp3": {"B": 7, "N": 13, "O": 5, "P": 3, "Q": 1},
    "lut1": {"E": 11, "D": 7, "B": 3, "K": 5},
    "lut2": {"E1": 11, "E2": 13, "D": 7, "B": 3, "K1": 5, "K2": 1},
    "group_norm": {"N": 2, "G": 3, "D": 5, "H": 7, "W": 1},
    "moments": {"N": 7, "K": 129},
    "softmax": {"N": 7, "D": 129},
    "layer_norm": {"N": 7, "D": 129},
    "kronecker": {"M": 2, "N0": 3, "N1": 5, "N2": 7, "D2": 13},
    "cumsum_rows": {"M": 7, "N": 129},
    "cumsum_columns": {"M": 129, "N": 7},
}


SEED = 5


def small(problem: str) -> Case:
    (found,) = (p for p in PROBLEMS if p.name == problem)
    return Case(f"small {problem}", Suite.PAPER, found, SIZES[problem], 1.0)
