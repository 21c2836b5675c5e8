"""Extents: as isl finds them, also where quotients are read off their dividends."""

from __future__ import annotations

import islpy as isl
import pytest

from tc.polyhedral.analysis.extents import extent_of

FUNCTIONS = (
    "b", "-b", "2b + i", "7", "floor(b/5)", "floor((b + 2)/3)", "floor(b/4) + 3", "floor((2b + i)/7)",
    "floor((b + N)/6)", "-floor(b/3)", "3*floor(b/4)", "floor(b/2) + i", "floor(floor(b/2)/3)", "b mod 5", "max(b, i)",
)  # fmt: skip
DOMAINS = (
    "S[b, i] : 1 <= N <= 9 and -3 <= b <= 11 and 0 <= i <= 4; T[b] : 1 <= N <= 9 and 2 <= b <= 3",
    "S[b, i] : 1 <= N <= 9 and 5 <= b < 5 + N and i <= b and i >= 0 and b mod 3 = 1",
    "T[b] : 1 <= N <= 9 and 0 <= b <= 30",
)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_extents_are_those_that_isl_finds(function: str, domain: str) -> None:
    values = isl.UnionPwAff(f"[N] -> {{ S[b, i] -> [({function})]; T[b] -> [(floor(b/2))] }}")
    instances = isl.UnionSet(f"[N] -> {{ {domain} }}")
    own = values.intersect_domain(instances)
    assert extent_of(values, instances) == own.max_val().to_python() - own.min_val().to_python() + 1
