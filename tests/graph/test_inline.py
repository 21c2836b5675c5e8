"""Pointwise temporaries that become part of a reduction, and those that do not."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.graph.partition.inline import inlined
from tc.language.text.print_program import program_text
from tc.reference.compare import compare

SQUARES = "t(i,j) = x(i,j) - z(i,j)  u(i,j) = t(i,j) * t(i,j)  y(i) +=! u(i,j)"
# Bodies, and how many statements are left.
CASES = {
    "two temporaries": (SQUARES, 1),
    "a permuted one": ("t(j,i) = x(i,j) * z(i,j)  y(i) max=! t(j,i)", 1),
    "indices in another order": ("t(i,j) = x(j,i) * 2.0  y() +=! t(i,j)", 1),
    "read twice": ("t(i,j) = exp(x(i,j))  y(i) +=! t(i,j) * (t(i,j) + z(i,j))", 1),
    "of another type": ("t(i,j) = double(x(i,j)) - z(i,j)  y(i) +=! float(t(i,j))", 1),
    "two users": ("t(i,j) = x(i,j) - z(i,j)  y(i) +=! t(i,j)  y(i) += t(i,j) * t(i,j)", 3),
    "a reduction": ("t(i,j) +=! x(i,j) * z(i,k)  y(i) max=! t(i,j)", 2),
    "read by many": ("t(i) = x(i,0) * 2.0  y(i) +=! t(i) * z(i,j)", 2),
    "read elsewhere": ("t(i,j) = x(i,j)  y(i) +=! t(i,j) * t(j,i) where i in 0:5, j in 0:5", 2),
    "of fewer elements": ("t(i,j) = x(i,j)  y(i) +=! t(i,j) where i in 0:5, j in 1:5", 2),
    "pointwise alone": ("t(i) = x(i,0) + 1.0  y(i) = t(i) * t(i)", 2),
    "of an earlier value": ("y(i) = x(i,0)  t(i,j) = y(i) * z(i,j)  y(i) = 2.0  y(i) += t(i,j)", 3),
    "changed in between": ("w(i) = x(i,0)  t(i,j) = w(i) * z(i,j)  w(i) += 1.0  y(i) +=! t(i,j)  y(i) += w(i)", 5),
    "of halves": ("t(i,j) = half(x(i,j))  y(i) +=! float(t(i,j))", 2),
    "with a condition": ("t(i,j) = x(i,j)  y(i) +=! t(i,j) where i in 0:5, j in 0:5, i > j", 2),
    "too long": ("t(i,j) = x(i,j)" + " + z(i,j)" * 70 + "  y(i) +=! t(i,j) * t(i,j)", 2),
}


@pytest.mark.parametrize("name", CASES)
def test_which_temporaries_become_part_of_a_reduction(name: str) -> None:
    body, left = CASES[name]
    text = f"def f(float(N,M) x, float(N,M) z) -> (y) {{ {body} }}"
    program = inlined(tc.define(text).single().program)
    assert len(program.statements) == left
    changed = tc.define(program_text(program)).single()
    assert changed.program == program
    random = np.random.default_rng(0)
    arrays = [random.uniform(-1, 1, (5, 5)).astype(np.float32) for _ in range(2)]
    (meant,) = tc.define(text).single().oracle(*arrays).values()
    assert compare(meant, np.asarray(changed(*arrays))).ok
