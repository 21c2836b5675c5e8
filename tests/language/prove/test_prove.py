"""What isl cannot show within its budget is refused for given sizes, and left open before they are known."""

from __future__ import annotations

import pytest

from tc.base.errors import RangeError
from tc.language.lower.specialize import specialize
from tc.language.program.report import Report
from tc.language.prove.prove import prove_specialized, prove_values
from tests.language.support import array, lower, signature

TRIANGLES = lower(
    "def f(float(N,N) A) -> (O) {"
    " O(i,j) = A(i,j) where i in 0:N, j in 0:i+1 O(i,j) = A(j-i,j) where i in 0:N, j in i+1:N }"
)


def test_a_spent_budget_refuses_given_sizes() -> None:
    specialization = specialize(TRIANGLES, signature(A=array(7, 7)))
    with pytest.raises(RangeError) as caught:
        prove_specialized(specialization, TRIANGLES, {}, max_operations=1)
    assert str(caught.value) == (
        "f: the proof of its accesses exceeds isl's budget of 1 operations\n"
        "    hint: simplify subscripts, guards and ranges"
    )


def test_a_spent_budget_says_nothing_about_open_sizes() -> None:
    report = Report()
    prove_values(TRIANGLES, report, max_operations=1)
    assert report.count == 0


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_triangles_cover_the_square(size: int) -> None:
    specialize(TRIANGLES, signature(A=array(size, size)))
