"""Sums of products of bytes by dot products of words, and what the proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

import tc
from tc.base.dots import Dot
from tc.language.program.program import INDEX_TYPE, Binary, Call, Literal, Reduction, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.dotted import Dots
from tc.polyhedral.operands.dot_products import dot_products
from tc.polyhedral.proof.rewrites.verify_dots import find_wrong_dots
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
VNNI: Final = "cpu:x86-64-v4+avx512vnni"


def product(left: str, right: str, update: str = "+=!") -> str:
    result = "int32(M,N) C" if update == "+=!" else "C"
    return f"def f({left}(M,K) A, {right}(K,N) B) -> ({result}) {{ C(m,n) {update} int32(A(m,k)) * int32(B(k,n)) }}"


ROWS: Final = "def f(uint8(M,K) A, int8(N,K) B) -> (C) { C(m,n) +=! int32(A(m,k)) * int32(B(n,k)) }"
CONVOLUTION: Final = """
def f(int8(N,C,H,W) I, int8(F,C,3,3) K) -> (O) { O(n,f,h,w) +=! int32(I(n,c,h+i,w+j)) * int32(K(f,c,i,j)) }"""
# Texts, shapes, and which words are read, and of which operand bits are flipped.
CASES: Final[dict[str, tuple[str, Shapes, str]]] = {
    "both signed": (product("int8", "int8"), ((17, 36), (36, 21)), "A_words for A, B_words for B; A is flipped"),
    "both unsigned": (product("uint8", "uint8"), ((17, 36), (36, 21)), "A_words for A, B_words for B; B is flipped"),
    "the first unsigned": (product("uint8", "int8"), ((17, 36), (36, 21)), "B_words for B"),
    "the second unsigned": (product("int8", "uint8"), ((17, 36), (36, 21)), "B_words for B"),
    "ragged steps": (product("int8", "int8"), ((17, 35), (35, 21)), "A_words for A, B_words for B; A is flipped"),
    "one step more": (product("uint8", "uint8"), ((17, 37), (37, 21)), "A_words for A, B_words for B; B is flipped"),
    "rows of both": (ROWS, ((17, 35), (21, 35)), "A_words for A, B_words for B"),
    "added to": (product("int8", "int8", "+="), ((17, 35), (35, 21)), "A_words for A, B_words for B; A is flipped"),
    "a convolution": (CONVOLUTION, ((2, 18, 5, 7), (9, 18, 3, 3)), "I_words for I, K_words for K; I is flipped"),
    "few steps": (product("int8", "int8"), ((17, 15), (15, 21)), ""),
    "few uses": (product("int8", "int8"), ((7, 36), (36, 21)), ""),
    "a square": ("def f(int8(M,K) A) -> (C) { C(m,n) +=! int32(A(m,k)) * int32(A(n,k)) }", ((17, 36),), ""),
    "words": (product("int32", "int8"), ((17, 36), (36, 21)), ""),
    "a part of the steps": (
        "def f(int8(M,K) A, int8(L,N) B) -> (C) { C(m,n) +=! int32(A(m,k)) * int32(B(k,n)) where k in 0:32 }",
        ((17, 36), (36, 21)),
        "",
    ),
}


def made_of(before: Specialization) -> list[tuple[Specialization, Dots]]:
    return list(dot_products(before, tuple(Dot)))


def _said(made: Dots) -> str:
    copies = ", ".join(f"{copy} for {operand}" for operand, copy in made.copies)
    return copies + (f"; {made.flipped} is flipped" if made.flipped else "")


@pytest.mark.parametrize("name", CASES)
def test_which_sums_are_dot_products(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    found = made_of(before)
    assert [_said(made) for _, made in found] == ([expected] if expected else [])
    for after, made in found:
        assert find_wrong_dots(before, after, made) is None
        assert str(made).startswith(f"{made.name}: ")


def _arrays(f: tc.Comprehension, shapes: Shapes) -> list[np.ndarray[Any, Any]]:
    """With the least and the greatest bytes among them."""
    rng = np.random.default_rng(0)
    found = []
    for name, shape in zip(f.program.arguments, shapes, strict=True):
        limits = np.iinfo(f.program.tensor(name).type.value)
        array = rng.integers(max(limits.min, -128), min(limits.max, 255), shape, endpoint=True).astype(limits.dtype)
        array.reshape(-1)[:2] = max(limits.min, -128), min(limits.max, 255)
        found.append(array)
    return found


@one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_exact(name: str) -> None:
    text, shapes, _ = CASES[name]
    f = tc.define(text).single()
    arrays = _arrays(f, shapes)
    out = np.full((17, 21), -(1 << 31), np.int32) if name == "added to" else None
    wanted = f.reference(*arrays, out=None if out is None else out.copy())
    for numerics in (tc.CpuOptions(), tc.CpuOptions(packed_operands=0), tc.CpuOptions(register_tile=(3, 5))):
        found = f(*arrays, out=None if out is None else out.copy(), options=numerics)
        np.testing.assert_array_equal(found, wanted)


def test_the_greatest_products_do_not_saturate() -> None:
    f = tc.define(product("uint8", "int8")).single()
    left, right = np.full((9, 64), 255, np.uint8), np.full((64, 16), -128, np.int8)
    np.testing.assert_array_equal(f(left, right), np.full((9, 16), -255 * 128 * 64))


def test_processors_with_the_instruction_use_it() -> None:
    text = tc.define(ROWS).single().compile((64, 128), (64, 128), target=VNNI).source
    assert "tc_add_byte_dot_int32x16(" in text
    assert "tc_byte_word_int32_at(&t_A[" in text
    assert "byte_dot" not in tc.define(ROWS).single().compile((64, 128), (64, 128), target="cpu:x86-64-v4").source


@pytest.mark.parametrize(
    "text",
    [
        "def f(int32(M,K) A, int32(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        "def f(int32(M,K) A, int32(K,N) B) -> (C) { C(m,n) +=! A(m,k) / B(k,n) }",
        "def f(int32(M,K) A, int32(K,N) B) -> (C) { C(m,n) max=! A(m,k) - B(k,n) }",
        "def f(int32(M,K) A, int32(K,N) B) -> (C) { C(m,n) +=! min(A(m,k), B(k,n)) }",
        "def f(int32(M,K) A, int32(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) where k <= n }",
    ],
)
def test_tiles_of_words_that_are_asked_for(text: str) -> None:
    f = tc.define(text).single()
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32) for shape in ((17, 36), (36, 37)))
    right[::3] = 0
    wanted = f.reference(left, right)
    for options in (tc.CpuOptions(register_tile=(3, 16)), tc.CpuOptions(register_tile=(4, 21))):
        np.testing.assert_array_equal(f(left, right, options=options), wanted)


def test_explanations_name_dot_products() -> None:
    said = str(tc.define(ROWS).single().explain((64, 128), (64, 128), target=VNNI))
    assert "== dot products ==\nS0: B_words for B, four steps of k at a time\n" in said


def _changed(after: Specialization, target: str, change: Callable[[Statement], Statement]) -> Specialization:
    statements = tuple(change(own) if own.target == target else own for own in after.program.statements)
    return replace(after, program=replace(after.program, statements=statements))


def _other_words(own: Statement) -> Statement:
    assert isinstance(own.value, Call)
    first, second, *rest = own.value.arguments
    return replace(own, value=replace(own.value, arguments=(second, first, *rest)))


def _shorter(own: Statement) -> Statement:
    last = own.iterators[-1]
    assert isinstance(last.end, Literal)
    shorter = replace(last, end=Literal(int(last.end.value) - 1, INDEX_TYPE))
    return replace(own, iterators=(*own.iterators[:-1], shorter))


def _without_literal(own: Statement) -> Statement:
    """Sums begin with 1, and lose another multiple of what flipped bits add."""
    match own.value:
        case Call(name, (Literal(), words), type):
            return replace(own, value=Call(name, (Literal(1, type), words), type))
        case Binary(_, left):
            return replace(own, value=left)
        case _:
            return own


MUTANTS: Final[dict[str, tuple[str, Callable[[Statement], Statement]]]] = {
    "bytes in another order": ("A_words", _other_words),
    "a word less": ("A_words", _shorter),
    "words that are added up": ("B_words", lambda own: replace(own, reduction=Reduction.ADD)),
    "signs that are exchanged": ("C", lambda own: _other_words(own) if isinstance(own.value, Call) else own),
    "a step less": ("C", _shorter),
    "other sums": ("C_sums", _without_literal),
    "sums of some words": ("C_sums", _shorter),
    "another multiple": ("C", _without_literal),
    "sums that begin again": ("C", lambda own: replace(own, initialize=not own.initialize)),
    "bits that are not flipped": (
        "A_words",
        lambda own: (
            replace(own, value=Call("byte_word", own.value.arguments, own.value.type))
            if isinstance(own.value, Call)
            else own
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_sums_are_refused(name: str) -> None:
    target, change = MUTANTS[name]
    for shapes in (((17, 36), (36, 21)), ((17, 35), (35, 21))):
        before = specialized(product("int8", "int8"), shapes)
        ((after, made),) = made_of(before)
        assert find_wrong_dots(before, _changed(after, target, change), made) is not None


def test_other_programs_are_refused() -> None:
    before = specialized(product("int8", "int8"), ((17, 36), (36, 21)))
    ((after, made),) = made_of(before)
    statements = after.program.statements
    others = (
        replace(after, program=replace(after.program, statements=statements[1:])),
        replace(after, program=replace(after.program, statements=statements[::-1])),
        replace(after, program=replace(after.program, results=())),
        replace(after, layouts={**after.layouts, "A": after.layouts["B"]}),
        replace(after, layouts={**after.layouts, "A_words": after.layouts["B_words"]}),
        replace(after, layouts={**after.layouts, "C_sums": after.layouts["B_words"]}),
    )
    assert all(find_wrong_dots(before, other, made) is not None for other in others)
    unflipped = replace(made, flipped=None, sums=None)
    assert find_wrong_dots(before, after, unflipped) is not None
