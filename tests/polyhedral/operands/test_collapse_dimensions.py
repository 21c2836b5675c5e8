"""Dimensions that everything counts together are one, and the proof refuses other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

import tc
from tc.language.program.program import INDEX_TYPE, IteratorReference, Literal, Reduction, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.relaid import CollapsedTensor
from tc.polyhedral.operands.collapse_dimensions import collapse_dimensions
from tc.polyhedral.operands.sample_operands import sample_operands
from tc.polyhedral.proof.rewrites.verify_collapsed import find_wrong_collapse
from tc.polyhedral.schedule.join_dimensions import join_dimensions
from tc.reference.compare import compare
from tests.polyhedral.operands.results import require_right
from tests.polyhedral.support import specialized

Shapes = tuple[tuple[int, ...], ...]
PRODUCT: Final = "def f(float(N,C,H,W) X, float(F,C) K) -> (Y) { Y(n,f,h,w) +=! X(n,c,h,w) * K(f,c) }"
WINDOW: Final = """
def f(float(N,C,H,W) X, float(F,C,KH,KW) K, float(F) B, float(N,F,H,W) R) -> (Y) {
    Y(n,f,h,w) +=! X(n,c,h+i,w+j) * K(f,c,i,j)
    Y(n,f,h,w) = Y(n,f,h,w) + B(f) + R(n,f,h,w)
    Y(n,f,h,w) = fmax(Y(n,f,h,w), 0)
}"""
WINDOWS: Final = "def f(float(N,C,H,W) X, float(F,C,KH,KW) K) -> (Y) { Y(n,f,h,w) +=! X(n,c,h+i,w+j) * K(f,c,i,j) }"
STRIDED: Final = "def f(float(N,C,H,W) X, float(F,C) K) -> (Y) { Y(n,f,h,w) +=! X(n,c,2*h,2*w) * K(f,c) }"
FILLED: Final = """
def f(float(N,C,H,W) X, float(F,C) K) -> (Y) {
    t(n,c,h,w) = X(n,c,h,w) * X(n,c,h,w+1) where w in 0:W-1
    Y(n,f,h,w) +=! t(n,c,h,w) * K(f,c)
}"""
SHIFTED: Final = """
def f(float(N,C,H,W) X, float(F,C) K) -> (Y, Z) {
    Y(n,f,h,w) +=! X(n,c,h,w) * K(f,c)
    Z(n,f,h,w) = Y(n,f,h,w) + (w > 0 ? Y(n,f,h,w-1) : 0.0)
}"""
MEAN: Final = "def f(float(N,C,H,W) x) -> (s) { s(n,h,w) +=! x(n,c,h,w) }"
# Texts, shapes, and which dimensions become one.
CASES: Final[dict[str, tuple[str, Shapes, list[str]]]] = {
    "a product": (
        PRODUCT,
        ((2, 5, 7, 9), (11, 5)),
        ["X: dimensions 2 and 3 are one", "Y: dimensions 2 and 3 are one"],
    ),
    "a window of one element": (
        WINDOW,
        ((2, 5, 7, 9), (11, 5, 1, 1), (11,), (2, 11, 7, 9)),
        ["X: dimensions 2 and 3 are one", "R: dimensions 2 and 3 are one", "Y: dimensions 2 and 3 are one"],
    ),
    "what is sampled": (
        STRIDED,
        ((2, 9, 9, 13), (17, 9)),
        ["Y: dimensions 2 and 3 are one", "X_sampled: dimensions 2 and 3 are one"],
    ),
    "what is filled row by row": (
        FILLED,
        ((2, 5, 7, 10), (11, 5)),
        ["t: dimensions 2 and 3 are one", "Y: dimensions 2 and 3 are one"],
    ),
    "columns": (MEAN, ((2, 5, 7, 9),), ["x: dimensions 2 and 3 are one", "s: dimensions 1 and 2 are one"]),
    "a window of several": (WINDOWS, ((2, 5, 8, 10), (11, 5, 2, 2)), []),
    "one element more": (SHIFTED, ((2, 5, 7, 9), (11, 5)), []),
    "long rows": (PRODUCT, ((2, 5, 2, 512), (11, 5)), []),
    "rows of one element": (PRODUCT, ((2, 5, 7, 1), (11, 5)), []),
}


def _before(text: str, shapes: Shapes) -> Specialization:
    """With dimensions joined."""
    found = specialized(text, shapes)
    for changed, _ in sample_operands(found):
        found = changed
    for joined, _ in join_dimensions(found):
        found = joined
    return found


def made_of(before: Specialization) -> list[tuple[Specialization, CollapsedTensor]]:
    return list(collapse_dimensions(before))


@pytest.mark.parametrize("name", CASES)
def test_which_dimensions_are_one(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = _before(text, shapes)
    found = made_of(before)
    for after, made in found:
        assert find_wrong_collapse(before, after, made) is None
        before = after
    assert [str(made) for _, made in found] == expected


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str) -> None:
    text, shapes, expected = CASES[name]
    assert ("== collapsed dimensions ==" in require_right(text, shapes)) == bool(expected)


GATHERS: Final[dict[str, str]] = {
    "of an image": "def f(float(M,C,W) X, int32(B) I, float(F,C) K) -> (Y) { Y(m,f,w) +=! X(I(m),c,2*w) * K(f,c) }",
    "of channels": "def f(float(C,H,W) X, int32(B) I, float(F,B) K) -> (Y) { Y(f,h,w) +=! X(I(m),h,w) * K(f,m) }",
}


@pytest.mark.parametrize("name", GATHERS)
def test_what_data_choose_keeps_its_dimensions(name: str) -> None:
    """Errors name the dimension that an index is out of."""
    f = tc.define(GATHERS[name]).single()
    x = np.ones((4, 9, 16), np.float32)
    index = np.array([1, 3, 4], np.int32)
    weights = np.ones((17, 9 if name == "of an image" else 3), np.float32)
    with pytest.raises(tc.ArgumentError, match="dimension 0 of X"):
        f(x, index, weights)


BOUNDS: Final = """
def f(float(N,C,H,W) X, float(F,C) K) -> (Y) {
    Y(n,f,h,w) +=! X(n,c,h+i,w) * K(f,c) where i in 0:1, c in i:5, h in 0:7
}"""


def test_an_iterator_of_one_value_may_bound_others() -> None:
    f, rng = tc.define(BOUNDS).single(), np.random.default_rng(0)
    x, k = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 7, 9), (11, 5)))
    assert compare(f.oracle(x, k)["Y"], np.asarray(f(x, k))).ok


def test_explicit_tiles_are_those_of_the_loops_of_the_program() -> None:
    f = tc.define(PRODUCT).single()
    said = str(f.explain(*CASES["a product"][1], options=tc.CpuOptions(register_tile=(2, 2, 8))))
    assert "collapsed dimensions" not in said


def test_rows_with_gaps_are_two_dimensions() -> None:
    wide = np.ones((2, 5, 7, 10), np.float32)[..., :9]
    weights = np.ones((11, 5), np.float32)
    f = tc.define(PRODUCT).single()
    np.testing.assert_array_equal(np.asarray(f(wide, weights)), np.full((2, 11, 7, 9), 5, np.float32))
    assert "collapsed dimensions" not in str(f.explain(wide, weights))


def _statements(after: Specialization, change: Callable[[Statement], Statement]) -> Specialization:
    return replace(after, program=replace(after.program, statements=tuple(map(change, after.program.statements))))


def _layout(after: Specialization, name: str, **fields: Any) -> Specialization:
    return replace(after, layouts={**after.layouts, name: replace(after.layouts[name], **fields)})


MUTANTS: Final[dict[str, Callable[[Specialization], Specialization]]] = {
    "another count": lambda s: _layout(s, "X", shape=(2, 5, 62)),
    "rows with gaps": lambda s: _layout(s, "X", strides=(320, 64, 1)),
    "elements apart": lambda s: _layout(s, "X", strides=(630, 126, 2)),
    "another tensor": lambda s: _layout(s, "K", strides=(6, 1)),
    "other sums": lambda s: _statements(s, lambda own: replace(own, reduction=Reduction.MULTIPLY)),
    "another element": lambda s: _statements(
        s, lambda own: replace(own, subscripts=(IteratorReference("f"), *own.subscripts[1:]))
    ),
    "sizes that are open": lambda s: _layout(s, "X", packed=True),
    "another declaration": lambda s: replace(
        s,
        program=replace(
            s.program,
            tensors=tuple(
                replace(own, shape=(*own.shape[:-1], Literal(62, INDEX_TYPE))) if own.name == "X" else own
                for own in s.program.tensors
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_programs_are_refused(name: str) -> None:
    before = _before(PRODUCT, ((2, 5, 7, 9), (11, 5)))
    after, made = made_of(before)[0]
    assert find_wrong_collapse(before, MUTANTS[name](after), made) is not None


def test_other_dimensions_are_refused() -> None:
    before = _before(PRODUCT, ((2, 5, 7, 9), (11, 5)))
    after, made = made_of(before)[0]
    for far, near in ((1, 2), (3, 2), (0, 3), (2, 2), (2, -1), (-2, 3), (2, 4)):
        assert find_wrong_collapse(before, after, replace(made, far=far, near=near)) is not None
