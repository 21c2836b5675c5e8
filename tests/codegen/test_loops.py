"""Loops, guards and layouts: every iteration runs once, wherever the elements lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Final

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.codegen.printer.source import c_source
from tc.language.program.program import IteratorReference, Literal, Reduction
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
    StatementBody,
)
from tests.codegen.build import binary, buffer, index, instance, integer, loops, operation, read
from tests.codegen.harness import VECTOR_BYTES, run

F = ScalarType.FLOAT32
INT64 = ScalarType.INT64


EXTENT = 40


def counted(*roots: LoopTree) -> list[list[int]]:
    """For every tree, the ``i`` at which it ran an instance of its statement ``S``, as often as it ran."""
    bodies, nests = [], []
    for n, root in enumerate(roots):
        at = (integer(n), IteratorReference("i"))
        bodies.append(StatementBody(f"S{n}", ("i",), "count", at, Reduction.ADD, integer(1)))
        nests.append(renamed(root, f"S{n}"))
    count = np.zeros((len(roots), EXTENT), np.int64)
    target = buffer("count", INT64, *count.shape, writable=True)
    program = LoopProgram("counting", (target,), (), (), tuple(bodies), Block(tuple(nests)), checked=True)
    assert run(program, {"count": count}) == 0
    return [[i for i, times in enumerate(row) for _ in range(times)] for row in count]


def renamed(tree: LoopTree, statement: str) -> LoopTree:
    """The tree with all its instances of that statement."""
    match tree:
        case Loop() | Allocation():
            return replace(tree, body=renamed(tree.body, statement))
        case Guard(condition, then, otherwise):
            return Guard(condition, renamed(then, statement), otherwise and renamed(otherwise, statement))
        case Block(children):
            return Block(tuple(renamed(child, statement) for child in children))
        case Scheduled():
            return replace(tree, statement=statement)
        case Prefetch() | Matrices():
            return tree


def loop(lower: IndexExpression | int, upper: IndexExpression | int, step: int, kind: LoopKind) -> Loop:
    return Loop("c0", index(lower), index(upper), step, kind, instance("S", "c0"))


# Loops over lanes are exchanges of what lanes have (``tests/test_shuffles.py``); copies are made before the text is.
KINDS: Final = tuple(kind for kind in LoopKind if kind not in (LoopKind.LANES, LoopKind.FULLY_UNROLLED))


@pytest.mark.parametrize("kind", KINDS)
def test_loops_run_every_iteration_once(kind: LoopKind) -> None:
    bounds = [(0, 0, 1), (0, 12, 1), (3, 39, 1), (0, 39, 7), (5, 33, 4), (5, 4, 1), (9, 2, 3)]
    nests = [loop(lower, upper, step, kind) for lower, upper, step in bounds]
    assert counted(*nests) == [list(range(lower, upper + 1, step)) for lower, upper, step in bounds]


def test_bounds_may_depend_on_loops_around() -> None:
    """Tiles of 8 over 0..36, the last one cut, with every kind of loop in every kind of loop."""
    upper = operation(IndexOperator.MINIMUM, operation(IndexOperator.ADD, "t", 7), 36)
    nests = [
        Loop("t", IndexLiteral(0), IndexLiteral(36), 8, outer, loop(IndexVariable("t"), upper, 1, inner))
        for outer, inner in product(KINDS, repeat=2)
        if outer is not LoopKind.VECTOR
    ]
    assert counted(*nests) == [list(range(37))] * len(nests)


def test_parallel_loops_nest() -> None:
    flat = operation(IndexOperator.ADD, operation(IndexOperator.MULTIPLY, 5, "a"), "b")
    nest = loops([("a", 7, LoopKind.PARALLEL), ("b", 5, LoopKind.PARALLEL)], instance("S", flat))
    assert counted(loops([("r", 2, LoopKind.SEQUENTIAL)], nest)) == [sorted(2 * list(range(35)))]


def test_guards_choose_a_branch() -> None:
    even = operation(IndexOperator.EQUAL, operation(IndexOperator.ZERO_REMAINDER, "c0", 2), 0)
    small = operation(IndexOperator.LESS, "c0", 6)
    shifted = instance("S", operation(IndexOperator.ADD, "c0", 20))
    tree = Guard(operation(IndexOperator.AND, even, small), instance("S", "c0"), Guard(even, shifted, None))
    assert counted(loops([("c0", 10, LoopKind.SEQUENTIAL)], tree)) == [[0, 2, 4, 26, 28]]


OPERATORS: Final[dict[IndexOperator, Callable[[int, int], int]]] = {
    IndexOperator.ADD: lambda a, b: a + b,
    IndexOperator.SUBTRACT: lambda a, b: a - b,
    IndexOperator.MULTIPLY: lambda a, b: a * b,
    IndexOperator.MINIMUM: min,
    IndexOperator.MAXIMUM: max,
    IndexOperator.EQUAL: lambda a, b: int(a == b),
    IndexOperator.LESS: lambda a, b: int(a < b),
    IndexOperator.LESS_EQUAL: lambda a, b: int(a <= b),
    IndexOperator.GREATER: lambda a, b: int(a > b),
    IndexOperator.GREATER_EQUAL: lambda a, b: int(a >= b),
    IndexOperator.AND: lambda a, b: int(bool(a) and bool(b)),
    IndexOperator.OR: lambda a, b: int(bool(a) or bool(b)),
}


VALUES: Final = range(-9, 10)
PAIRS: Final = tuple(product(VALUES, repeat=2))


def operator_cases(a: IndexExpression, b: IndexExpression) -> Iterator[tuple[IndexExpression, list[int]]]:
    """Expressions in a and b, and their values for all pairs: every operator, alone and on either side of others."""
    for operator, exact in OPERATORS.items():
        plain, values = operation(operator, a, b), [exact(x, y) for x, y in PAIRS]
        yield plain, values
        yield operation(IndexOperator.SUBTRACT, 5, plain), [5 - value for value in values]
        yield operation(IndexOperator.MULTIPLY, plain, -3), [-3 * value for value in values]
        yield operation(IndexOperator.NEGATE, plain), [-value for value in values]
        less = operation(IndexOperator.LESS, a, b)
        yield operation(IndexOperator.SELECT, less, plain, -1), [exact(x, y) if x < y else -1 for x, y in PAIRS]
    for divisor in (1, 2, 3, 7):
        multiple, square = operation(IndexOperator.MULTIPLY, a, divisor), operation(IndexOperator.MULTIPLY, a, a)
        yield operation(IndexOperator.EXACT_DIVIDE, multiple, divisor), [x for x, _ in PAIRS]
        yield operation(IndexOperator.FLOOR_DIVIDE, a, divisor), [x // divisor for x, _ in PAIRS]
        yield operation(IndexOperator.NONNEGATIVE_DIVIDE, square, divisor), [x * x // divisor for x, _ in PAIRS]
        yield operation(IndexOperator.NONNEGATIVE_REMAINDER, square, divisor), [x * x % divisor for x, _ in PAIRS]
        divides = operation(IndexOperator.EQUAL, operation(IndexOperator.ZERO_REMAINDER, a, divisor), 0)
        yield divides, [int(x % divisor == 0) for x, _ in PAIRS]


def test_index_operators_on_both_sides_of_zero() -> None:
    a, b = operation(IndexOperator.SUBTRACT, "a", 9), operation(IndexOperator.SUBTRACT, "b", 9)
    cases = tuple(operator_cases(a, b))
    bodies = []
    for n in range(len(cases)):
        at = (IteratorReference("a"), IteratorReference("b"), integer(n))
        bodies.append(StatementBody(f"S{n}", ("a", "b", "v"), "out", at, None, IteratorReference("v")))
    out = np.zeros((len(VALUES), len(VALUES), len(cases)), np.int64)
    instances = tuple(instance(f"S{n}", "a", "b", expression) for n, (expression, _) in enumerate(cases))
    root = loops([(name, len(VALUES), LoopKind.SEQUENTIAL) for name in "ab"], Block(instances))
    target = buffer("out", INT64, *out.shape, writable=True)
    program = LoopProgram("operators", (target,), (), (), tuple(bodies), root, checked=True)
    assert run(program, {"out": out}, (), "-O1") == 0
    for n, (expression, expected) in enumerate(cases):
        assert out[:, :, n].ravel().tolist() == expected, expression


def test_elements_lie_at_their_strides() -> None:
    """A reversed, transposed and broadcast operand, written into every second column."""
    m, n = 7, 129
    base = np.arange(m * n, dtype=np.float32).reshape(n, m)
    a, b = base[::-1].T, np.broadcast_to(np.arange(n, dtype=np.float32), (m, n))
    out = np.zeros((m, 2 * n), np.float32)
    c = out[:, 1::2]
    at = (IteratorReference("i"), IteratorReference("j"))
    program = LoopProgram(
        "strides",
        (
            buffer("A", F, m, n, strides=(1, -m)),
            buffer("B", F, m, n, strides=(0, 1)),
            buffer("C", F, m, n, strides=(2 * n, 2), writable=True),
        ),
        (),
        (),
        (StatementBody("S0", ("i", "j"), "C", at, None, binary("-", read("A", F, "i", "j"), read("B", F, "i", "j"))),),
        loops([("c0", m, LoopKind.PARALLEL), ("c1", n, LoopKind.VECTOR)], instance("S0", "c0", "c1")),
        checked=True,
    )
    assert run(program, {"A": a, "B": b, "C": c}) == 0
    np.testing.assert_array_equal(c, a - b)
    assert not out[:, ::2].any()


def test_scalars_temporaries_and_tensors_without_dimensions() -> None:
    """``t() = a * n; out() = t() - x`` with scalars of every kind."""
    types = (
        ScalarType.FLOAT32,
        ScalarType.FLOAT64,
        ScalarType.INT8,
        ScalarType.UINT64,
        ScalarType.BOOL,
        ScalarType.FLOAT16,
    )
    values = (1.5, -2.25, -7, (1 << 64) - 1, 1, 0.5)
    from tc.language.program.program import ScalarReference

    bodies = [StatementBody("T", (), "t", (), None, ScalarReference("int8", ScalarType.INT8))]
    bodies += [
        StatementBody(f"S{n}", (), f"out{n}", (), None, ScalarReference(str(type), type))
        for n, type in enumerate(types)
    ]
    bodies.append(
        StatementBody("U", (), "u", (), None, binary("*", read("t", ScalarType.INT8), Literal(2, ScalarType.INT8)))
    )
    outputs = [buffer(f"out{n}", type, writable=True) for n, type in enumerate(types)]
    program = LoopProgram(
        "scalars",
        (*outputs, buffer("u", ScalarType.INT8, writable=True)),
        (buffer("t", ScalarType.INT8, writable=True),),
        tuple((str(type), type) for type in types),
        tuple(bodies),
        Block(tuple(instance(body.name) for body in bodies)),
        checked=True,
    )
    arrays = {f"out{n}": np.zeros((), type.value) for n, type in enumerate(types)}
    arrays["u"] = np.zeros((), np.int8)
    assert run(program, arrays, values) == 0
    assert [arrays[f"out{n}"].item() for n in range(len(types))] == list(values)
    assert arrays["u"] == -14


def test_names_may_be_anything() -> None:
    """Keywords, macros, names of the prelude, and names that differ only in what C cannot spell."""
    names = [
        "int",
        "restrict",
        "NAN",
        "linux",
        "2LUT",
        "tc_kernel",
        "runtime",
        "c0",
        "accumulator",
        "a.b",
        "a_b",
        "i_i",
        "__global__",
    ]
    bodies = [
        StatementBody(name, (name,), name, (IteratorReference(name),), Reduction.ADD, read(other, INT64, name))
        for name, other in pairwise(names)
    ]
    nests = [loops([("c0", 3, LoopKind.PARALLEL)], instance(body.name, "c0")) for body in bodies]
    buffers = tuple(buffer(name, INT64, 3, writable=True) for name in names)
    program = LoopProgram("while /* \\\n??/", buffers, (), (), tuple(bodies), Block(tuple(nests)), checked=True)
    arrays = {name: np.full(3, n) for n, name in enumerate(names)}
    assert run(program, arrays) == 0
    assert [arrays[name].tolist() for name in names] == [[2 * n + 1] * 3 for n in range(len(names) - 1)] + [
        [len(names) - 1] * 3
    ]
    assert "\\" not in c_source(program, VECTOR_BYTES).text.split("#include", 1)[0]
