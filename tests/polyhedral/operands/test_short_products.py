"""Sums of products of bytes and of integers of 16 bits by dot products of two, and what the proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.base.dots import Dot
from tc.language.program.program import INDEX_TYPE, Call, Literal, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.dotted import Dots
from tc.polyhedral.operands.dot_products import dot_products
from tc.polyhedral.proof.rewrites.verify_dots import find_wrong_dots
from tests.levels import runs
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
# Levels, and how many words their vectors have.
LEVELS: Final = {"cpu:x86-64": 4, "cpu:x86-64-v3": 8, "cpu:x86-64-v4": 16}


def product(left: str, right: str) -> str:
    return f"def f({left}(M,K) A, {right}(K,N) B) -> (C) {{ C(m,n) +=! int32(A(m,k)) * int32(B(k,n)) }}"


ROWS: Final = "def f(int16(M,K) A, int16(N,K) B) -> (C) { C(m,n) +=! int32(A(m,k)) * int32(B(n,k)) }"
CONVOLUTION: Final = """
def f(uint8(N,C,H,W) I, int8(F,C,3,3) K) -> (O) { O(n,f,h,w) +=! int32(I(n,c,h+i,w+j)) * int32(K(f,c,i,j)) }"""
# Texts, shapes, and which words are copied: integers of 16 bits that lie in whole words are read where they lie.
CASES: Final[dict[str, tuple[str, Shapes, str | None]]] = {
    "both signed": (product("int8", "int8"), ((17, 36), (36, 21)), "A_words for A, B_words for B"),
    "unsigned by signed": (product("uint8", "int8"), ((17, 36), (36, 21)), "A_words for A, B_words for B"),
    "both unsigned, ragged": (product("uint8", "uint8"), ((17, 37), (37, 21)), "A_words for A, B_words for B"),
    "integers of 16 bits": (product("int16", "int16"), ((17, 36), (36, 21)), "B_words for B"),
    "rows of both": (ROWS, ((17, 36), (21, 36)), "B_words for B"),
    "ragged rows": (ROWS, ((17, 37), (21, 37)), "A_words for A, B_words for B"),
    "bytes by integers of 16 bits": (product("int8", "int16"), ((17, 36), (36, 21)), "A_words for A, B_words for B"),
    "a convolution": (CONVOLUTION, ((2, 18, 5, 7), (9, 18, 3, 3)), "I_words for I, K_words for K"),
    "integers that have no sign": (product("uint16", "int16"), ((17, 36), (36, 21)), None),
    "few steps": (product("int16", "int16"), ((17, 15), (15, 21)), None),
    "few uses": (product("int16", "int16"), ((7, 36), (36, 21)), None),
    "in integers of 64 bits": (product("int16", "int16").replace("int32(", "int64("), ((17, 36), (36, 21)), None),
}


def _made(before: Specialization) -> list[tuple[Specialization, Dots]]:
    return list(dot_products(before, (Dot.SHORTS,)))


@pytest.mark.parametrize("name", CASES)
def test_which_sums_are_dot_products_of_two(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    found = _made(before)
    copies = [", ".join(f"{copy} for {operand}" for operand, copy in made.copies) for _, made in found]
    assert copies == ([] if expected is None else [expected])
    for after, made in found:
        assert find_wrong_dots(before, after, made) is None
        assert str(made) == f"{made.name}: {expected}, two steps of {made.iterator} at a time"


def _arrays(f: tc.Comprehension, shapes: Shapes) -> list[npt.NDArray[Any]]:
    """With the least and the greatest integers among them."""
    rng = np.random.default_rng(0)
    found = []
    for name, shape in zip(f.program.arguments, shapes, strict=True):
        limits = np.iinfo(f.program.tensor(name).type.value)
        array = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(limits.dtype)
        array.reshape(-1)[:2] = limits.min, limits.max
        found.append(array)
    return found


@one_in(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", [target for target in LEVELS if runs(target)])
def test_sums_are_exact(target: str, name: str) -> None:
    text, shapes, _ = CASES[name]
    f = tc.define(text).single()
    arrays = _arrays(f, shapes)
    wanted = f.reference(*arrays)
    for options in (tc.CpuOptions(), tc.CpuOptions(packed_operands=0), tc.CpuOptions(register_tile=(3, 5))):
        np.testing.assert_array_equal(f.compile(*arrays, target=target, options=options)(*arrays), wanted)


def test_two_of_the_least_integers_add_up_as_in_32_bits() -> None:
    f = tc.define(product("int16", "int16")).single()
    left, right = np.full((9, 64), -(1 << 15), np.int16), np.full((64, 16), -(1 << 15), np.int16)
    np.testing.assert_array_equal(f(left, right), f.reference(left, right))
    np.testing.assert_array_equal(f(left[:, :18], right[:18]), np.full((9, 16), -(1 << 31)))  # 18 << 30 modulo 2^32


@pytest.mark.parametrize("target", LEVELS)
def test_every_level_has_the_instruction(target: str) -> None:
    f = tc.define(ROWS).single()
    text = f.compile((64, 128), (64, 128), target=target).source
    assert f"tc_add_short_dot_int32x{LEVELS[target]}(" in text
    assert "tc_short_word_int32_at(&t_A[" in text


def test_bytes_go_in_fours_where_there_is_an_instruction_for_them() -> None:
    f = tc.define(product("uint8", "int8")).single()
    text = f.compile((64, 128), (128, 64), target="cpu:x86-64-v4+avx512vnni").source
    assert "byte_dot" in text
    assert "short_dot" not in text


def _exchanged(own: Statement) -> Statement:
    assert isinstance(own.value, Call)
    first, second = own.value.arguments
    return replace(own, value=replace(own.value, arguments=(second, first)))


def _shorter(own: Statement) -> Statement:
    last = own.iterators[-1]
    assert isinstance(last.end, Literal)
    shorter = replace(last, end=Literal(int(last.end.value) - 1, INDEX_TYPE))
    return replace(own, iterators=(*own.iterators[:-1], shorter))


def _of_floats(own: Statement) -> Statement:
    assert isinstance(own.value, Call)
    return replace(own, value=replace(own.value, function="pair_word"))


@pytest.mark.parametrize("dot", [Dot.BYTES, Dot.SHORTS])
def test_a_part_of_the_steps_is_refused(dot: Dot) -> None:
    """Words of all steps, of a sum over some: the last word has a step that the sum does not have."""
    text = product("uint8", "int8")
    before = specialized(text, ((17, 36), (36, 21)))
    ((after, made),) = dot_products(before, (dot,))
    shorter = specialized(text.replace(" }", " where k in 0:35 }"), ((17, 36), (36, 21)))
    said = str(find_wrong_dots(shorter, after, made))
    assert said.startswith("a statement is not what the program says: S0 does not run over all steps of ")


MUTANTS: Final[dict[str, tuple[str, Callable[[Statement], Statement]]]] = {
    "integers in another order": ("A_words", _exchanged),
    "a word less": ("A_words", _shorter),
    "words of numbers": ("B_words", _of_floats),
    "a step less": ("C", _shorter),
    "sums that begin again": ("C", lambda own: replace(own, initialize=not own.initialize)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_sums_are_refused(name: str) -> None:
    target, change = MUTANTS[name]
    for shapes in (((17, 36), (36, 21)), ((17, 35), (35, 21))):
        before = specialized(product("uint8", "int8"), shapes)
        ((after, made),) = _made(before)
        statements = tuple(change(own) if own.target == target else own for own in after.program.statements)
        changed = replace(after, program=replace(after.program, statements=statements))
        assert find_wrong_dots(before, changed, made) is not None
        for other in (replace(made, dot=Dot.BYTES), replace(made, flipped="A", sums="B")):
            assert find_wrong_dots(before, after, other) is not None
