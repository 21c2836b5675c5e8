"""Indirect reads: an index out of range reports a fault and reads nothing outside; lazily, and only if asked to."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

from tc.base.faults import Check
from tc.base.types import ScalarType
from tc.codegen.printer.source import c_source
from tc.grammar.syntax import UnaryOperator
from tc.language.isl.affine import Frame, affine_function
from tc.language.program.program import (
    Call,
    Cast,
    Expression,
    IteratorReference,
    Literal,
    Read,
    ScalarReference,
    Select,
    Unary,
)
from tc.language.program.proven_inside import is_proven_inside
from tc.polyhedral.ir.loops import LoopProgram
from tests.codegen.build import binary, buffer, integer, negate, pointwise, read
from tests.codegen.harness import VECTOR_BYTES, Array, dtype_of, run

F, INT64 = ScalarType.FLOAT32, ScalarType.INT64
EXTENT, ROWS, COLUMNS = 7, 5, 3


def gather(type: ScalarType, rows: int = ROWS) -> LoopProgram:
    """``y(i) = x(I(i), 1)``."""
    row = Cast(read("I", type, "i"), INT64)
    inputs = [buffer("I", type, EXTENT), buffer("x", F, rows, COLUMNS)]
    return pointwise({"y": Read("x", (row, integer(1)), F)}, inputs, EXTENT)


def run_gather(program: LoopProgram, indices: Array, rows: int = ROWS) -> tuple[int, Array]:
    x = np.arange(rows * COLUMNS, dtype=np.float32).reshape(rows, COLUMNS)
    y = np.full(EXTENT, -1, np.float32)
    return run(program, {"I": indices, "x": x, "y": y}), y


@pytest.mark.parametrize(
    "type", [ScalarType.INT8, ScalarType.INT32, INT64, ScalarType.UINT8, ScalarType.UINT64], ids=str
)
def test_indices_inside_gather_without_a_fault(type: ScalarType) -> None:
    indices = np.array([0, 4, 2, 2, 1, 3, 0], dtype_of(type))
    fault, y = run_gather(gather(type), indices)
    assert fault == 0
    np.testing.assert_array_equal(y, 3 * indices.astype(np.float32) + 1)


@pytest.mark.parametrize(
    ("type", "bad"),
    [
        (ScalarType.INT8, -1),
        (ScalarType.INT32, ROWS),
        (INT64, -(1 << 63)),
        (INT64, (1 << 63) - 1),
        (ScalarType.UINT64, (1 << 64) - 1),
        (ScalarType.UINT64, 1 << 63),
    ],
    ids=str,
)
def test_index_outside_stores_the_number_of_the_check(type: ScalarType, bad: int) -> None:
    program = gather(type)
    for place in (0, 3, EXTENT - 1):
        indices = np.zeros(EXTENT, dtype_of(type))
        indices[place] = bad
        fault, y = run_gather(program, indices)
        assert c_source(program, VECTOR_BYTES).checks[fault - 1] == Check("S_y", "x", 0, ROWS)
        np.testing.assert_array_equal(np.delete(y, place), 1.0)


def test_an_index_into_a_repeated_dimension_is_checked() -> None:
    inputs = [buffer("I", INT64, EXTENT), buffer("x", F, ROWS, strides=(0,))]
    program = pointwise({"y": Read("x", (read("I", INT64, "i"),), F)}, inputs, EXTENT)
    for bad, expected in ((ROWS - 1, 0), (ROWS, 1), (-1, 1)):
        x = np.broadcast_to(np.ones(1, np.float32), (ROWS,))
        assert run(program, {"I": np.full(EXTENT, bad), "x": x, "y": np.zeros(EXTENT, np.float32)}) == expected


def test_nothing_can_be_gathered_from_an_empty_tensor() -> None:
    fault, y = run_gather(gather(INT64, rows=0), np.zeros(EXTENT, np.int64), rows=0)
    assert fault == 1
    np.testing.assert_array_equal(y, 0.0)


def test_unchecked_gathers_have_no_checks() -> None:
    program = replace(gather(INT64), checked=False)
    assert c_source(program, VECTOR_BYTES).checks == ()
    assert "fault" not in c_source(program, VECTOR_BYTES).text.split("tc_kernel_body", 1)[1]
    fault, y = run_gather(program, np.arange(EXTENT) % ROWS)
    assert fault == 0
    np.testing.assert_array_equal(y, 3.0 * (np.arange(EXTENT) % ROWS) + 1)


def test_a_guard_keeps_an_index_from_being_checked() -> None:
    """``I(i) < ROWS ? x(I(i), 1) : 0`` and ``I(i) < ROWS && x(I(i), 1) > 0`` never fault."""
    row = read("I", INT64, "i")
    inside = binary("<", row, integer(ROWS))
    element = Read("x", (row, integer(1)), F)
    zero = Literal(0.0, F)
    values: dict[str, Expression] = {
        "y": Select(inside, element, zero, F),
        "z": binary("&&", inside, binary(">", element, zero)),
        "w": binary("||", binary(">=", row, integer(ROWS)), binary(">", element, zero)),
    }
    program = pointwise(values, [buffer("I", INT64, EXTENT), buffer("x", F, ROWS, COLUMNS)], EXTENT)
    indices = np.array([0, 5, 1, 1 << 40, 4, 6, 2])
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    y, z, w = np.zeros(EXTENT, np.float32), np.zeros(EXTENT, np.bool_), np.zeros(EXTENT, np.bool_)
    assert run(program, {"I": indices, "x": x, "y": y, "z": z, "w": w}) == 0
    good = indices < ROWS
    np.testing.assert_array_equal(y, np.where(good, 3 * indices + 1, 0))
    np.testing.assert_array_equal(z, good)
    np.testing.assert_array_equal(w, np.ones(EXTENT, np.bool_))


def test_nested_gathers_check_every_level() -> None:
    """``x(I(J(i)), I(i))``: three checks, each with its own number."""
    outer, inner = read("J", INT64, "i"), read("I", INT64, "i")
    value = Read("x", (Read("I", (outer,), INT64), inner), F)
    inputs = [buffer("J", INT64, EXTENT), buffer("I", INT64, EXTENT), buffer("x", F, ROWS, COLUMNS)]
    program = pointwise({"y": value}, inputs, EXTENT)
    checks = c_source(program, VECTOR_BYTES).checks
    assert set(checks) == {Check("S_y", "I", 0, EXTENT), Check("S_y", "x", 0, ROWS), Check("S_y", "x", 1, COLUMNS)}
    good = {"J": np.arange(EXTENT)[::-1].copy(), "I": np.arange(EXTENT) % COLUMNS}
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    for changed, value_there, expected in (
        ("J", EXTENT, Check("S_y", "I", 0, EXTENT)),
        ("I", COLUMNS, Check("S_y", "x", 1, COLUMNS)),
    ):
        arrays = {name: indices.copy() for name, indices in good.items()}
        arrays[changed][2] = value_there
        fault = run(program, {**arrays, "x": x, "y": np.zeros(EXTENT, np.float32)})
        assert checks[fault - 1] == expected
    y = np.zeros(EXTENT, np.float32)
    assert run(program, {**good, "x": x, "y": y}) == 0
    np.testing.assert_array_equal(y, x[good["I"][good["J"]], good["I"]])


FIRST, SECOND = IteratorReference("i"), IteratorReference("j")


@pytest.mark.parametrize(
    "subscript",
    [FIRST, integer(3), negate(FIRST), binary("+", FIRST, SECOND),
     binary("-", integer(2), binary("*", integer(3), FIRST)),
     binary("/", binary("+", FIRST, SECOND), integer(2)), binary("%", FIRST, integer(4)),
     Call("min", (FIRST, integer(2)), INT64), Select(binary("<", FIRST, SECOND), FIRST, SECOND, INT64),
     Select(Unary(UnaryOperator.NOT, binary("&&", binary("<", FIRST, SECOND), binary("==", FIRST, integer(1))),
                  ScalarType.BOOL), FIRST, SECOND, INT64)],
)  # fmt: skip
def test_affine_subscripts_are_proven_and_not_checked(subscript: Expression) -> None:
    assert is_proven_inside(subscript)
    frame = Frame(isl.Context(), "S0", ("i", "j"))
    assert affine_function(subscript, frame) is not None


@pytest.mark.parametrize(
    "subscript",
    [binary("*", FIRST, SECOND), binary("/", FIRST, SECOND), binary("%", FIRST, integer(0)), read("I", INT64, "i"),
     binary("+", FIRST, read("I", INT64, "i")), Cast(Literal(1.5, F), INT64), ScalarReference("n", INT64),
     Call("max", (FIRST, read("I", INT64, "i")), INT64),
     Select(binary("<", FIRST, read("I", INT64, "i")), FIRST, SECOND, INT64)],
)  # fmt: skip
def test_other_subscripts_are_checked(subscript: Expression) -> None:
    assert not is_proven_inside(subscript)
