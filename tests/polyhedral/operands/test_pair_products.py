"""Sums of products of bfloat16 by dot products of pairs, what the proof refuses, and halves in lanes of float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.base.dots import Dot
from tc.language.program.program import Call, Cast, Expression, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.dotted import Dots
from tc.polyhedral.operands.dot_products import dot_products
from tc.polyhedral.proof.rewrites.verify_dots import find_wrong_dots
from tc.reference.compare import compare
from tests.levels import runs
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
PAIRS: Final = "cpu:x86-64-v4+avx512bf16"
PRODUCT: Final = "def f(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
ROWS: Final = "def f(bfloat16(M,K) A, bfloat16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
IN_FLOAT32: Final = "def f(bfloat16(M,K) A, bfloat16(K,N) B) -> (C) { C(m,n) +=! float(A(m,k)) * float(B(k,n)) }"
CONVOLUTION: Final = """
def f(bfloat16(N,C,H,W) I, bfloat16(F,C,3,3) K) -> (O) { O(n,f,h,w) +=! I(n,c,h+i,w+j) * K(f,c,i,j) }"""
# Texts, shapes, and which words are copied: whole words that are read one by one are not.
CASES: Final[dict[str, tuple[str, Shapes, str | None]]] = {
    "whole steps": (PRODUCT, ((17, 36), (36, 21)), "B_words for B"),
    "ragged steps": (PRODUCT, ((17, 37), (37, 21)), "A_words for A, B_words for B"),
    "rows of both": (ROWS, ((17, 36), (21, 36)), "B_words for B"),
    "ragged rows of both": (ROWS, ((17, 35), (21, 35)), "A_words for A, B_words for B"),
    "factors in float32": (IN_FLOAT32, ((17, 36), (36, 21)), "B_words for B"),
    "ragged steps in float32": (IN_FLOAT32, ((17, 37), (37, 21)), "A_words for A, B_words for B"),
    "a convolution": (CONVOLUTION, ((2, 18, 5, 7), (9, 18, 3, 3)), "I_words for I, K_words for K"),
    "a long sum": (PRODUCT, ((17, 1300), (1300, 21)), "B_words for B"),
    "few steps": (PRODUCT, ((17, 15), (15, 21)), None),
    "few uses": (PRODUCT, ((7, 36), (36, 21)), None),
    "a square": ("def f(bfloat16(M,K) A) -> (C) { C(m,n) +=! A(m,k) * A(n,k) }", ((17, 36),), None),
    "other halves": (PRODUCT.replace("bfloat16(K", "float16(K"), ((17, 36), (36, 21)), None),
    "sums in float64": (IN_FLOAT32.replace("float(", "double("), ((17, 36), (36, 21)), None),
    "greatest products": (PRODUCT.replace("+=!", "max=!"), ((17, 36), (36, 21)), None),
    "factors that are computed": (PRODUCT.replace("* B(k,n)", "* (B(k,n) + 1)"), ((17, 36), (36, 21)), None),
}


def _made(before: Specialization) -> list[tuple[Specialization, Dots]]:
    return list(dot_products(before, tuple(Dot)))


@pytest.mark.parametrize("name", CASES)
def test_which_sums_are_dot_products_of_pairs(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    found = _made(before)
    copies = [", ".join(f"{copy} for {operand}" for operand, copy in made.copies) for _, made in found]
    assert copies == ([] if expected is None else [expected])
    for after, made in found:
        assert find_wrong_dots(before, after, made) is None
        assert str(made) == f"{made.name}: {expected}, two steps of {made.iterator} at a time"


def _arrays(f: tc.Comprehension, shapes: Shapes, scale: float = 1.0) -> list[npt.NDArray[Any]]:
    rng = np.random.default_rng(0)
    types = (f.program.tensor(name).type for name in f.program.arguments)
    dtypes = [np.float16 if type is tc.ScalarType.FLOAT16 else ml_dtypes.bfloat16 for type in types]
    return [
        (np.clip(rng.standard_normal(shape), -3, 3) * scale).astype(own)
        for shape, own in zip(shapes, dtypes, strict=True)
    ]


def _require_right(f: tc.Comprehension, arrays: list[npt.NDArray[Any]], options: tc.CpuOptions) -> None:
    found = np.asarray(f(*arrays, options=options))
    (expected,) = f.oracle(*arrays).values()
    comparison = compare(expected, found)
    assert comparison.ok, comparison


@one_in(3)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_within_the_bound(name: str) -> None:
    text, shapes, _ = CASES[name]
    f = tc.define(text).single()
    for options in (tc.CpuOptions(), tc.CpuOptions(packed_operands=0), tc.CpuOptions(register_tile=(3, 5))):
        _require_right(f, _arrays(f, shapes), options)


# Subnormal factors and sums may be zeros; products beyond float32's range may be infinite.
@pytest.mark.parametrize("scale", [1e-39, 1e-23, 1e-20, 1e19, 1e38])
@pytest.mark.parametrize("text", [PRODUCT, IN_FLOAT32])
def test_numbers_at_the_ends_of_the_range(text: str, scale: float) -> None:
    f = tc.define(text).single()
    _require_right(f, _arrays(f, ((17, 37), (37, 21)), scale), tc.CpuOptions())


def test_infinities_and_nan_come_through() -> None:
    f = tc.define(PRODUCT).single()
    left, right = _arrays(f, ((17, 37), (37, 21)))
    left[3, 36], left[5, 2], left[7, 0], right[0, 4] = np.inf, np.nan, np.inf, 0
    _require_right(f, [left, right], tc.CpuOptions())
    found = np.asarray(f(left, right), np.float32)
    assert np.isinf(found[3]).all()
    assert np.isnan(found[5]).all()
    assert np.isnan(found[7, 4])


def test_the_oracle_has_room_for_subnormal_numbers_alone() -> None:
    f = tc.define(IN_FLOAT32).single()
    tiny = np.full((1, 4), 2.0**-130, ml_dtypes.bfloat16)
    one = np.ones((4, 1), ml_dtypes.bfloat16)
    (flushed,) = f.oracle(tiny, one).values()
    assert flushed.error[0, 0] >= 4 * 2.0**-130
    (large,) = f.oracle(np.ones((1, 4), ml_dtypes.bfloat16), one).values()
    # Six and a quarter roundings by a whole unit of the last place of the sum, as many as matrix instructions make of
    # four products, and those of the products by half a unit.
    assert large.error[0, 0] <= 1.001 * 6.75 * 4 * 2.0**-23 + 4 * 2.0**-126
    (zero,) = f.oracle(np.zeros((1, 4), ml_dtypes.bfloat16), one).values()
    assert zero.error[0, 0] == 0


def test_processors_with_the_instruction_use_it() -> None:
    f = tc.define(PRODUCT).single()
    text = f.compile((64, 128), (128, 64), target=PAIRS).source
    assert "tc_add_pair_dot_float32x16(" in text
    assert "tc_pair_word_int32_at(&t_A[" in text
    assert "tc_store_bfloat16_float32x16(" in text
    assert "pair_dot" not in f.compile((64, 128), (128, 64), target="cpu:x86-64-v4").source


TARGETS: Final = ("cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v2", "cpu")


@one_in(5)
@pytest.mark.parametrize("target", [target for target in TARGETS if runs(target)])
@pytest.mark.parametrize("type", ["float16", "bfloat16"])
@pytest.mark.parametrize("tile", [None, (4, 16), (3, 5), (2, 21)])
def test_halves_are_in_lanes_of_float32(type: str, target: str, tile: tuple[int, ...] | None) -> None:
    f = tc.define(ROWS.replace("bfloat16", type).replace("B(n,k)", "B(k,n)").replace("(N,K) B", "(K,N) B")).single()
    arrays = _arrays(f, ((17, 37), (37, 21)))
    arrays[0].reshape(-1)[:6] = np.inf, -np.inf, np.nan, 0, 6e-8, -6e-8
    kernel = f.compile(*arrays, target=target, options=tc.CpuOptions(register_tile=tile))
    (expected,) = f.oracle(*arrays).values()
    comparison = compare(expected, np.asarray(kernel(*arrays)))
    assert comparison.ok, comparison


def _with_value(after: Specialization, target: str, change: Callable[[Statement], Statement]) -> Specialization:
    statements = tuple(change(own) if own.target == target else own for own in after.program.statements)
    return replace(after, program=replace(after.program, statements=statements))


def _exchanged(value: Expression) -> Expression:
    match value:
        case Cast(operand, type):
            return Cast(_exchanged(operand), type)
        case Call(name, (first, second), type):
            return Call(name, (second, first), type)
        case _:
            raise AssertionError(value)


def _without_a_step(own: Statement) -> Statement:
    return replace(own, iterators=own.iterators[:-1])


def _exchanged_inside(own: Statement) -> Statement:
    """The words of the first operand have their elements in the other order."""
    match own.value:
        case Cast(Call(name, (word, other), inner), type):
            return replace(own, value=Cast(Call(name, (_exchanged(word), other), inner), type))
        case _:
            raise AssertionError(own.value)


MUTANTS: Final[dict[str, tuple[str, int, Callable[[Statement], Statement]]]] = {
    "elements in another order": ("B_words", 36, lambda own: replace(own, value=_exchanged(own.value))),
    "a loop less": ("B_words", 36, _without_a_step),
    "factors in another order": ("C", 37, lambda own: replace(own, value=_exchanged(own.value))),
    "elements of a word in another order": ("C", 36, _exchanged_inside),
    "sums that go on": ("C", 36, lambda own: replace(own, initialize=not own.initialize)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_sums_of_pairs_are_refused(name: str) -> None:
    target, steps, change = MUTANTS[name]
    before = specialized(PRODUCT, ((17, steps), (steps, 21)))
    ((after, made),) = _made(before)
    assert find_wrong_dots(before, after, made) is None
    assert find_wrong_dots(before, _with_value(after, target, change), made) is not None


def test_pairs_have_no_flipped_bits_and_whole_words_only() -> None:
    before = specialized(PRODUCT, ((17, 37), (37, 21)))
    ((after, made),) = _made(before)
    assert find_wrong_dots(before, after, replace(made, flipped="A")) is not None
    assert find_wrong_dots(before, after, replace(made, copies=made.copies[:1])) is not None
    assert find_wrong_dots(before, after, replace(made, dot=Dot.BYTES)) is not None
