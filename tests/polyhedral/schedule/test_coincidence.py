"""Loops that statements share in parallel: linear algebra finds what isl's scheduler does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import islpy as isl
import pytest

from tc.language.isl.session import isl_context
from tc.polyhedral.ir.scop import Scop, ScopStatement, build_scop
from tc.polyhedral.schedule.coincidence import Apart, Shared, coincides, shared_iterators
from tc.polyhedral.schedule.dependences import analyze_dependences
from tc.polyhedral.schedule.hulls import Hull, hull_of, is_combination
from tc.polyhedral.schedule.prefix import Instances, Prefix
from tc.polyhedral.schedule.schedule import members_of_isl, schedule_scop
from tc.targets.options import Fusion
from tests.polyhedral.recurrences import RECURRENCES
from tests.polyhedral.support import SHAPES, scop_of


def hulls(context: isl.Context, *texts: str) -> list[Hull]:
    found = [hull_of(isl.Map.read_from_str(context, text), {}) for text in texts]
    return [hull for hull in found if hull is not None]


def shared(moving: dict[str, int], *texts: str) -> tuple[Shared, ...] | Apart | None:
    with isl_context() as context:
        return shared_iterators({name: range(count) for name, count in moving.items()}, hulls(context, *texts))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["{ S[i, j] -> T[i, j] }"], ({"S": 0, "T": 0}, {"S": 1, "T": 1})),
        (["{ S[i, j] -> T[j, i] }"], ({"S": 0, "T": 1}, {"S": 1, "T": 0})),
        (["{ S[i, j] -> T[i, k] }"], ({"S": 0, "T": 0},)),
        (["{ S[i, j] -> T[i, j] }", "{ T[i, j] -> S[i + 1, k] }"], ()),
        (["{ S[i, j] -> T[i, j] }", "{ S[i, j] -> S[i + 1, j] }"], ({"S": 1, "T": 1},)),
        (["{ S[i, j] -> T[i, j] }", "{ T[i, j] -> S[i + 1, j] }"], ({"S": 1, "T": 1},)),
        (["{ S[i, j] -> T[i, j] }", "{ T[i, j] -> T[i + 1, j + 1] }"], None),  # i - j, which is for isl to find
        (["{ S[i, j] -> T[i, 2j] }"], None),
        (["[N] -> { S[i, j] -> T[i, N - j] }"], None),
        (["{ S[i, j] -> T[k, l] : false }"], Apart()),
    ],
)
def test_iterators_that_coincide(texts: list[str], expected: tuple[dict[str, int], ...] | Apart | None) -> None:
    found = shared({"S": 2, "T": 2}, *texts)
    assert (tuple(own.iterators for own in found) if isinstance(found, tuple) else found) == expected


def test_constants_are_the_least_ones() -> None:
    found = shared({"S": 1, "T": 1, "R": 0}, "{ S[i] -> T[i - 2] }", "{ T[i] -> R[] : i = 3 }")
    assert found == (Shared({"S": 0, "T": 0}, {"S": 0, "T": 2, "R": 5}),)
    assert shared({"S": 1, "T": 1}, "{ S[i] -> T[i - 2] }") == (Shared({"S": 0, "T": 0}, {"S": 0, "T": 2}),)
    row = shared({"S": 2, "T": 1}, "{ S[i, j] -> T[j] : i = 3 }")
    assert row == (Shared({"S": 0}, {"S": 0, "T": 3}), Shared({"S": 1, "T": 0}, {"S": 0, "T": 0}))


def scops(context: isl.Context) -> Iterator[Scop]:
    yield from (scop_of(name, context) for name in SHAPES)
    yield from (build_scop(specialization, context) for specialization in RECURRENCES.values())


def test_programs_share_the_loops_that_isl_finds() -> None:
    compared = 0
    with isl_context() as context:
        for scop in scops(context):
            statements = tuple(s for s in scop.statements if not s.domain.is_empty())
            instances = {s.name: Instances(s) for s in statements}
            schedule_scop(scop, Fusion.MAXIMAL)  # tells isl how to schedule in this context
            prefix = Prefix(analyze_dependences(scop), instances)
            for group in (statements, *pairwise(statements)):
                compared += compare(group, prefix, instances)
    assert compared > 40


def compare(group: tuple[ScopStatement, ...], prefix: Prefix, instances: dict[str, Instances]) -> bool:
    """Whether linear algebra had an answer, which is then isl's."""
    domain = isl.UnionSet.from_set(group[0].domain)
    for statement in group[1:]:
        domain = domain.union(isl.UnionSet.from_set(statement.domain))
    names = [statement.name for statement in group]
    found = shared_iterators({name: instances[name].moving for name in names}, prefix.hulls(names))
    wanted = members_of_isl(prefix.conflicts(names), domain)
    if isinstance(found, Apart) or len(group) == 1:
        assert len(group) == 1 or wanted is None
    elif found is not None:
        assert wanted is not None
        assert len(found) == len(wanted), (names, found, wanted)
    return found is not None


def test_an_iterator_coincides_with_itself() -> None:
    with isl_context() as context:
        (steps,) = hulls(context, "{ S[t, b] -> S[t + 1, b] }")
        assert [coincides(position, steps) for position in (0, 1)] == [False, True]
        assert hull_of(isl.Map.read_from_str(context, "{ S[i] -> S[j] : false }"), {}) is None


def test_a_row_is_a_combination_of_others_or_not() -> None:
    assert is_combination([2, 3], [[1, 1], [0, 5]])
    assert not is_combination([1, 0], [[1, 1]])
    assert is_combination([0, 0], [])
