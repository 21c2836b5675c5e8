"""Rows that lie end to end in memory, of terms, of what is kept, and of what is read again: which are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.language.program.program import INDEX_TYPE, IteratorReference, Literal, Reduction, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.gpu.mapping.join_reread_rows import join_reread_rows
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.proof.rewrites.verify_pulled import find_wrong_pull
from tc.polyhedral.schedule.join_dimensions import join_dimensions
from tc.polyhedral.schedule.join_terms import join_terms
from tc.reference.compare import compare
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
Rewriting = Callable[[Specialization], Iterator[tuple[Specialization, PulledStatement]]]
MEAN: Final = "def f(float(N,C,H,W) x) -> (y) { y(n,c) +=! x(n,c,h,w) / (H * W) }"
NORM: Final = """
def f(float(N,C,H,W) x) -> (y) {
    s(n,h,w) +=! x(n,c,h,w) * x(n,c,h,w)
    y(n,c,h,w) = x(n,c,h,w) * rsqrt(s(n,h,w) / C + 1)
}"""
# Texts, shapes, and what is counted in another way.
TERMS: Final[dict[str, tuple[str, Shapes, list[str]]]] = {
    "a mean": (MEAN, ((3, 5, 7, 7),), ["S0: n = n, c = c, h = hw / 7, w = hw % 7"]),
    "rows longer than all lanes": (MEAN, ((3, 5, 7, 96),), ["S0: n = n, c = c, h = hw / 96, w = hw % 96"]),
    "long rows": (MEAN, ((3, 5, 7, 520),), []),
    "rows of all lanes": (MEAN, ((3, 5, 7, 128),), []),
    "three loops": (
        "def f(float(N,D,H,W) x) -> (y) { y(n) +=! x(n,d,h,w) }",
        ((3, 4, 5, 6),),
        ["S0: n = n, d = d, h = hw / 6, w = hw % 6"],
    ),
    "a product": (
        "def f(float(M,K,L) A, float(K,L,N) B) -> (C) { C(m,n) +=! A(m,k,l) * B(k,l,n) }",
        ((5, 6, 7), (6, 7, 9)),
        ["S0: m = m, n = n, k = kl / 7, l = kl % 7"],
    ),
    "whole vectors": (MEAN, ((3, 5, 7, 32),), []),
    "other dimensions between": ("def f(float(N,H,C,W) x) -> (y) { y(n,c) +=! x(n,h,c,w) }", ((3, 7, 5, 7),), []),
    "windows": ("def f(float(H,W) x, float(3,3) k) -> (y) { y(h,w) +=! x(h+i,w+j) * k(i,j) }", ((9, 9), (3, 3)), []),
    "an iterator as a value": ("def f(float(N,H,W) x) -> (y) { y(n) +=! x(n,h,w) * w }", ((3, 7, 7),), []),
    "one that is kept": ("def f(float(N,H,W) x) -> (y) { y(n,h) +=! x(n,h,w) }", ((3, 7, 7),), []),
    "a condition": ("def f(float(N,H,W) x) -> (y) { y(n) +=! x(n,h,w) where h <= w }", ((3, 7, 7),), []),
}
DIMENSIONS: Final[dict[str, tuple[str, Shapes, list[str]]]] = {
    "a norm": (
        NORM,
        ((2, 6, 5, 7),),
        ["S0: n = n, h = hw / 7, w = hw % 7, c = c", "S1: n = n, c = c, h = hw / 7, w = hw % 7"],
    ),
    "no sum of rows": ("def f(float(N,H,W) x) -> (y) { y(n,h,w) = x(n,h,w) + 1 }", ((2, 5, 7),), []),
    "long rows": (NORM, ((2, 3, 4, 512),), []),
    "a window beside": (
        "def f(float(N,C,H,W) x) -> (y) { s(n,h,w) +=! x(n,c,h,w)  y(n,h,w) = s(n,h,w) + (w > 0 ? s(n,h,w-1) : 0.0) }",
        ((2, 6, 5, 7),),
        [],
    ),
    "rows that are chosen": (
        "def f(float(N,C,H,W) x, float(H) b) -> (s) { s(n,h,w) +=! x(n,c,h,w) * b(h) }",
        ((2, 6, 5, 7), (5,)),
        [],
    ),
    "another order": (
        "def f(float(N,C,H,W) x) -> (y) { s(n,h,w) +=! x(n,c,h,w)  y(n,w,h) = s(n,h,w) }",
        ((2, 6, 5, 7),),
        [],
    ),
}
GROUPS: Final = """
def f(float(N,D,H,W) x, float(D) g) -> (y) {
    s(n) +=! x(n,d,h,w)
    y(n,d,h,w) = g(d) * (x(n,d,h,w) - s(n))
}"""
REREAD: Final[dict[str, tuple[str, Shapes, list[str]]]] = {
    "a group": (GROUPS, ((2, 3, 5, 7), (3,)), ["S1: n = n, d = dhw / 7 / 5, h = dhw / 7 % 5, w = dhw % 7"]),
    "a short row": (GROUPS, ((2, 3, 2, 3), (3,)), []),
    # Loops of its schedule are one without it.
    "nothing beside": (
        "def f(float(N,D,H) x) -> (y) { s(n) +=! x(n,d,h)  y(n,d,h) = x(n,d,h) - s(n) }",
        ((2, 6, 7),),
        [],
    ),
    "another order": (
        "def f(float(N,D,H) x, float(D) g) -> (y) { s(n) +=! x(n,d,h)  y(n,h,d) = g(d) * (x(n,d,h) - s(n)) }",
        ((2, 6, 7), (6,)),
        [],
    ),
    "a part of the row": (
        "def f(float(N,D,H) x, float(D) g) -> (y) { s(n) +=! x(n,d,h)  y(n,d,h) = g(d) - x(n,d,h) where h in 0:4 }",
        ((2, 6, 7), (6,)),
        [],
    ),
    "an iterator as a value": (
        "def f(float(N,D,H) x, float(D) g) -> (y) { s(n) +=! x(n,d,h)  y(n,d,h) = g(d) * x(n,d,h) * h }",
        ((2, 6, 7), (6,)),
        [],
    ),
    "in place": (
        """def f(float(N,D,H) z, float(D) g) -> (x) {
            x(n,d,h) = 2 * z(n,d,h)
            s(n) +=! x(n,d,h)
            x(n,d,h) = g(d) * (x(n,d,h) - s(n))
        }""",
        ((2, 6, 7), (6,)),
        ["S2: n = n, d = dh / 7, h = dh % 7"],
    ),
    "read once": (
        "def f(float(N,D,H) x, float(N,D,H) z, float(D) g) -> (y) { s(n) +=! x(n,d,h)  y(n,d,h) = g(d) * z(n,d,h) }",
        ((2, 6, 7), (2, 6, 7), (6,)),
        [],
    ),
}
CASES: Final[dict[str, tuple[Rewriting, str, Shapes, list[str]]]] = {
    **{f"again: {name}": (partial(join_reread_rows, least=40), *case) for name, case in REREAD.items()},
    **{name: (join_terms, *case) for name, case in TERMS.items()},
    **{name: (join_dimensions, *case) for name, case in DIMENSIONS.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_joined(name: str) -> None:
    rewrite, text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    said = []
    with isl_context() as context:
        for after, made in rewrite(before):
            assert find_wrong_pull(before, after, made, context) is None
            said.append(str(made))
            before = after
    assert said == expected


@one_in(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_right(name: str) -> None:
    _, text, shapes, _ = CASES[name]
    f = tc.define(text).single()
    rng = np.random.default_rng(0)
    arrays: list[npt.NDArray[Any]] = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    (expected,) = f.oracle(*arrays).values()
    for options in (
        tc.CpuOptions(),
        tc.CpuOptions(vectorize=False),
        tc.CpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL), threads=2),
    ):
        comparison = compare(expected, np.asarray(f(*arrays, options=options)))
        assert comparison.ok, comparison


def test_rows_with_gaps_stay_apart() -> None:
    f = tc.define(MEAN).single()
    x = np.random.default_rng(0).standard_normal((3, 5, 7, 9)).astype(np.float32)[..., :7]
    (expected,) = f.oracle(x).values()
    assert compare(expected, np.asarray(f(x))).ok


def _other_extent(own: Statement) -> Statement:
    *others, last = own.iterators
    assert isinstance(last.end, Literal)
    return replace(own, iterators=(*others, replace(last, end=Literal(int(last.end.value) - 1, INDEX_TYPE))))


MUTANTS: Final[dict[str, Callable[[Statement], Statement]]] = {
    "an element less": _other_extent,
    "another reduction": lambda own: replace(own, reduction=Reduction.MAXIMUM),
    "another subscript": lambda own: replace(own, subscripts=own.subscripts[::-1]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_instances_are_refused(name: str) -> None:
    before = specialized(MEAN, ((4, 4, 7, 7),))
    with isl_context() as context:
        ((after, made),) = join_terms(before)
        assert find_wrong_pull(before, after, made, context) is None
        changed = tuple(map(MUTANTS[name], after.program.statements))
        mutant = replace(after, program=replace(after.program, statements=changed))
        assert find_wrong_pull(before, mutant, made, context) is not None


def test_instances_that_write_the_same_element_keep_their_order() -> None:
    before = specialized("def f(float(N,H,W) x) -> (y) { y(n,h,w) = x(n,h,w) }", ((2, 5, 7),))
    (own,) = before.program.statements
    same = replace(own, subscripts=(own.subscripts[0], own.subscripts[1], Literal(0, INDEX_TYPE)))
    program = replace(before, program=replace(before.program, statements=(same,)))
    every = {iterator.name: place for iterator, place in zip(own.iterators, own.subscripts, strict=True)}
    with isl_context() as context:
        assert find_wrong_pull(before, before, PulledStatement(own.name, every), context) is None
        wrong = find_wrong_pull(program, program, PulledStatement(own.name, every), context)
    assert wrong is not None
    assert "write the same element" in str(wrong)


def test_explanations_name_joined_rows() -> None:
    said = str(tc.define(MEAN).single().explain((3, 5, 7, 7)))
    assert "== pull forms ==\nS0: n = n, c = c, h = hw / 7, w = hw % 7\n" in said


@pytest.mark.parametrize(
    "options",
    [
        tc.CpuOptions(tc.ScheduleOptions(tile=(2, 3))),
        tc.CpuOptions(register_tile=(1, 2, 7)),
        tc.CpuOptions(register_tile=(2, 7), vector_axis=1),
    ],
)
def test_options_that_name_loops_name_those_of_the_program(options: tc.CpuOptions) -> None:
    f = tc.define(NORM).single()
    x = np.random.default_rng(0).standard_normal((2, 6, 5, 7)).astype(np.float32)
    (expected,) = f.oracle(x).values()
    assert compare(expected, np.asarray(f(x, options=options))).ok
    assert "pull forms" not in str(f.explain(x, options=options)).split("== schedule ==")[0]


def test_other_elements_to_begin_with_are_refused() -> None:
    """Row 0 has no terms, and is 0 all the same."""
    before = specialized("def f(float(N,K) x) -> (y) { y(i) +=! x(i,k) where k in 0:i }", ((5, 6),))
    (own,) = before.program.statements
    first, *others = own.iterators
    later = replace(own, iterators=(replace(first, begin=Literal(1, INDEX_TYPE)), *others))
    after = replace(before, program=replace(before.program, statements=(later,)))
    every = PulledStatement(own.name, {iterator.name: IteratorReference(iterator.name) for iterator in own.iterators})
    with isl_context() as context:
        assert find_wrong_pull(before, before, every, context) is None
        found = find_wrong_pull(before, after, every, context)
        assert str(found) == "a statement is not what the program says: the elements that S0 begins with"
