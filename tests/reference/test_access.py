"""Subscripts, ranges, conditions, gathers and writes of every shape, against loops in Python."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.language.program.program import IteratorReference, Role, Scalar, ScalarReference, SizeReference
from tc.language.program.specialization import Specialization
from tc.reference.evaluate import evaluate
from tests.reference.build import (
    NOWHERE,
    binary,
    call,
    cast,
    index,
    literal,
    read,
    select,
    specialize,
    statement,
    tensor,
    unary,
)

IntArray = npt.NDArray[np.int32]


def counting(*shape: int) -> IntArray:
    """1, 2, 3, ... in row-major order."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


@pytest.mark.parametrize("size", [1, 7, 129])
def test_shifted_strided_and_reversed_reads(size: int) -> None:
    source, output = tensor("A", "int32", (3 * size,)), tensor("O", "int32", (size,), Role.OUTPUT)
    reads = (
        read(source, binary(binary("i", "*", 2), "+", 1)),
        read(source, binary(size - 1, "-", "i")),
        read(source, binary(binary("i", "*", 3), "/", 2)),
        read(source, binary(binary("i", "+", 5), "%", size)),
        read(source, unary("-", binary("i", "-", index(3 * size - 1)))),
    )
    a = counting(3 * size)
    expected = (
        [a[2 * i + 1] for i in range(size)],
        [a[size - 1 - i] for i in range(size)],
        [a[3 * i // 2] for i in range(size)],
        [a[(i + 5) % size] for i in range(size)],
        [a[3 * size - 1 - i] for i in range(size)],
    )
    for value, want in zip(reads, expected, strict=True):
        program = specialize([source, output], [statement(output, ["i"], {"i": (0, size)}, value)])
        np.testing.assert_array_equal(evaluate(program, {"A": a})["O"].values, want)


def test_triangular_ranges_and_conditions() -> None:
    n = 9
    source, output = tensor("A", "int32", (n, n)), tensor("O", "int32", (n,), Role.OUTPUT)
    even = binary(binary("j", "%", 2), "==", 0)
    written = statement(
        output,
        ["i"],
        {"i": (0, n), "j": (0, binary("i", "+", 1))},
        read(source, "i", "j"),
        "+",
        initialize=True,
        conditions=[even],
    )
    a = counting(n, n)
    expected = [sum(int(a[i, j]) for j in range(i + 1) if j % 2 == 0) for i in range(n)]
    np.testing.assert_array_equal(evaluate(specialize([source, output], [written]), {"A": a})["O"].values, expected)


def test_rows_without_an_instance_are_neutral() -> None:
    source, output = tensor("A", "int32", (4, 4)), tensor("O", "int32", (4,), Role.OUTPUT)
    written = statement(
        output,
        ["i"],
        {"i": (0, 4), "j": (binary("i", "+", 1), 4)},
        read(source, "i", "j"),
        "max",
        initialize=True,
        conditions=[binary("i", "!=", 1)],
    )
    result = evaluate(specialize([source, output], [written]), {"A": counting(4, 4)})["O"]
    assert result.values[[0, 2, 3]].tolist() == [4, 12, np.iinfo(np.int32).min]
    assert result.error[1] > 0  # the condition leaves row 1 unwritten


def test_an_in_out_reduction_leaves_rows_without_an_instance() -> None:
    source, output = tensor("A", "float32", (3, 3)), tensor("O", "float32", (3,), Role.IN_OUT)
    written = statement(output, ["i"], {"i": (0, 3), "j": (binary("i", "+", 1), 3)}, read(source, "i", "j"), "+")
    given = {"A": counting(3, 3).astype(np.float32), "O": np.array([10, 20, 0.1], np.float32)}
    result = evaluate(specialize([source, output], [written]), given)["O"]
    assert result.values.tolist() == [15, 26, float(np.float32(0.1))]
    assert result.error[2] == 0


def test_guards_keep_reads_inside() -> None:
    n = 5
    source, output = tensor("A", "int32", (n,)), tensor("O", "int32", (n + 2,), Role.OUTPUT)
    inside = binary(binary("i", ">=", 1), "&&", binary("i", "<=", n))
    padded = select(inside, read(source, binary("i", "-", 1)), literal(0, "int32"))
    program = specialize([source, output], [statement(output, ["i"], {"i": (0, n + 2)}, padded)])
    assert evaluate(program, {"A": counting(n)})["O"].values.tolist() == [0, 1, 2, 3, 4, 5, 0]


def test_the_left_side_of_logic_guards_the_right_side() -> None:
    n = 4
    source, output = tensor("A", "bool", (n,)), tensor("O", "bool", (n + 1,), Role.OUTPUT)
    present = binary(binary("i", "<", n), "&&", read(source, "i"))
    absent = binary(binary("i", ">=", n), "||", read(source, "i"))
    a = np.array([True, False, True, False])
    for value, last in ((present, False), (absent, True)):
        program = specialize([source, output], [statement(output, ["i"], {"i": (0, n + 1)}, value)])
        assert evaluate(program, {"A": a})["O"].values.tolist() == [*a.tolist(), last]


def test_a_guarded_read_of_an_empty_tensor() -> None:
    source, output = tensor("A", "int32", (0,)), tensor("O", "int32", (2,), Role.OUTPUT)
    value = select(binary("i", "<", 0), read(source, "i"), literal(7, "int32"))
    program = specialize([source, output], [statement(output, ["i"], {"i": (0, 2)}, value)])
    assert evaluate(program, {"A": np.zeros(0, np.int32)})["O"].values.tolist() == [7, 7]


def test_concatenation_by_affine_left_hand_sides() -> None:
    first, second = tensor("A", "int32", (2, 3)), tensor("B", "int32", (2, 4))
    output = tensor("O", "int32", (2, 7), Role.OUTPUT)
    statements = [
        statement(output, ["b", "c"], {"b": (0, 2), "c": (0, 3)}, read(first, "b", "c")),
        statement(output, ["b", binary("c", "+", 3)], {"b": (0, 2), "c": (0, 4)}, read(second, "b", "c")),
    ]
    a, b = counting(2, 3), 100 * counting(2, 4)
    result = evaluate(specialize([first, second, output], statements), {"A": a, "B": b})["O"]
    np.testing.assert_array_equal(result.values, np.concatenate([a, b], axis=1))
    assert not result.error.any()


def test_interleaving_reversal_and_upsampling() -> None:
    source, output = tensor("A", "int32", (5,)), tensor("O", "int32", (10,), Role.OUTPUT)
    twice = statement(
        output, [binary(binary("i", "*", 2), "+", "j")], {"i": (0, 5), "j": (0, 2)}, read(source, binary(4, "-", "i"))
    )
    a = counting(5)
    result = evaluate(specialize([source, output], [twice]), {"A": a})["O"]
    np.testing.assert_array_equal(result.values, np.repeat(a[::-1], 2))
    backwards = statement(output, [binary(9, "-", "i")], {"i": (0, 5)}, read(source, "i"))
    result = evaluate(specialize([source, output], [backwards]), {"A": a})["O"]
    np.testing.assert_array_equal(result.values[5:], a[::-1])


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("reduction", ["+", "*", "min", "max"])
def test_a_reduction_scatters_through_its_left_hand_side(dtype: str, reduction: str) -> None:
    """Overlapping windows: ``O(2*i + j) op= A(i,j)``."""
    source, output = tensor("A", dtype, (4, 3)), tensor("O", dtype, (9,), Role.OUTPUT)
    where = binary(binary("i", "*", 2), "+", "j")
    written = statement(output, [where], {"i": (0, 4), "j": (0, 3)}, read(source, "i", "j"), reduction, initialize=True)
    a = counting(4, 3).astype(dtype)
    terms: list[list[int]] = [[] for _ in range(9)]
    for i in range(4):
        for j in range(3):
            terms[2 * i + j].append(int(a[i, j]))
    folds: dict[str, Callable[[list[int]], int]] = {"+": sum, "*": math.prod, "min": min, "max": max}
    expected = [folds[reduction](group) for group in terms]
    result = evaluate(specialize([source, output], [written]), {"A": a})["O"]
    np.testing.assert_array_equal(result.values, expected)


def test_an_update_reads_its_whole_right_hand_side_first() -> None:
    output, source = tensor("O", "int32", (7,), Role.IN_OUT), tensor("A", "int32", (7, 3))
    own = binary(read(output, "i"), "+", read(source, "i", "k"))
    written = statement(output, ["i"], {"i": (0, 7), "k": (0, 3)}, own, "+")
    a, before = counting(7, 3), counting(7)
    result = evaluate(specialize([source, output], [written]), {"A": a, "O": before})["O"]
    np.testing.assert_array_equal(result.values, before + 3 * before + a.sum(axis=1))


def test_scalars_and_zero_dimensional_tensors() -> None:
    source, output = tensor("A", "int32", (5,)), tensor("s", "int32", (), Role.OUTPUT)
    factor = Scalar("factor", ScalarType.INT32, NOWHERE)
    value = binary(read(source, "i"), "*", ScalarReference("factor", ScalarType.INT32))
    written = statement(output, [], {"i": (0, 5)}, value, "+", initialize=True)
    again = statement(output, [], {}, binary(read(output), "+", 1))
    program = specialize([source, output], [written, again], [factor])
    assert evaluate(program, {"A": counting(5)}, {"factor": 3})["s"].values.tolist() == 46
    with pytest.raises(ArgumentError, match="f: scalar argument factor is missing; pass its value"):
        evaluate(program, {"A": counting(5)})


def test_iterators_count_as_values() -> None:
    output = tensor("O", "float32", (3, 4), Role.OUTPUT)
    value = cast(binary(binary("i", "*", 10), "+", "j"), "float32")
    result = evaluate(specialize([output], [statement(output, ["i", "j"], {"i": (0, 3), "j": (0, 4)}, value)]), {})["O"]
    np.testing.assert_array_equal(result.values, [[10 * i + j for j in range(4)] for i in range(3)])
    assert not result.error.any()


def test_large_boxes_are_cut_into_pieces() -> None:
    """More points than one step holds, along kept and reduced iterators."""
    source, output = tensor("A", "int64", (3, 700)), tensor("O", "int64", (3,), Role.OUTPUT)
    value = call("max", read(source, "i", "j"), read(source, "i", "k"))
    written = statement(output, ["i"], {"i": (0, 3), "j": (0, 700), "k": (0, 700)}, value, "+", initialize=True)
    a = np.random.default_rng(0).integers(-1000, 1000, (3, 700))
    result = evaluate(specialize([source, output], [written]), {"A": a})["O"]
    np.testing.assert_array_equal(result.values, np.maximum(a[:, :, None], a[:, None, :]).sum(axis=(1, 2)))


def test_temporaries_are_given_on_request() -> None:
    middle, output = tensor("T", "int32", (2,), Role.TEMPORARY), tensor("O", "int32", (2,), Role.OUTPUT)
    statements = [
        statement(middle, ["i"], {"i": (0, 2)}, cast(IteratorReference("i"), "int32")),
        statement(output, ["i"], {"i": (0, 2)}, binary(read(middle, "i"), "+", 1)),
    ]
    program = specialize([middle, output], statements)
    assert sorted(evaluate(program, {})) == ["O"]
    assert evaluate(program, {}, temporaries=True)["T"].values.tolist() == [0, 1]


# --- gathers -------------------------------------------------------------------------------------------------


def lookup(rows: int, columns: int, width: int) -> Specialization:
    """``O(b,d) +=! LUT(I(b,l),d)`` of a table with ten rows."""
    table, indices = tensor("LUT", "float32", (10, width)), tensor("I", "int32", (rows, columns))
    output = tensor("O", "float32", (rows, width), Role.OUTPUT)
    value = read(table, cast(read(indices, "b", "l"), "int64"), "d")
    ranges = {"b": (0, rows), "d": (0, width), "l": (0, columns)}
    written = statement(output, ["b", "d"], ranges, value, "+", initialize=True)
    return specialize([table, indices, output], [written], source="def f() -> (O) { O(b,d) +=! LUT(I(b,l),d) }")


def test_gathers_read_through_an_index_tensor() -> None:
    rng = np.random.default_rng(1)
    table, indices = rng.standard_normal((10, 3)).astype(np.float32), rng.integers(0, 10, (4, 5)).astype(np.int32)
    result = evaluate(lookup(4, 5, 3), {"LUT": table, "I": indices})["O"]
    np.testing.assert_allclose(result.values, table[indices].astype(np.float64).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("wrong", [-1, 10])
def test_an_index_outside_its_tensor_is_an_error_that_names_it(wrong: int) -> None:
    indices = np.zeros((4, 5), np.int32)
    indices[2, 3] = wrong
    given = {"LUT": np.ones((10, 3), np.float32), "I": indices}
    with pytest.raises(ArgumentError) as caught:
        evaluate(lookup(4, 5, 3), given)
    assert str(caught.value) == (
        f"f: 1:1: index tensor I gives {wrong} for dimension 0 of LUT, which has 10 elements, at b = 2, d = 0, l = 3; "
        "indices must be at least 0 and less than 10"
    )
    unchecked = evaluate(lookup(4, 5, 3), given, check_indices=False)["O"]
    assert np.isinf(unchecked.error[2]).all()
    assert np.isfinite(unchecked.error[[0, 1, 3]]).all()


def test_a_guard_keeps_a_gather_from_reading() -> None:
    table, indices = tensor("T", "int32", (3,)), tensor("I", "int64", (4,))
    output = tensor("O", "int32", (4,), Role.OUTPUT)
    position = read(indices, "i")
    value = select(binary(position, ">=", 0), read(table, position), literal(-1, "int32"))
    program = specialize([table, indices, output], [statement(output, ["i"], {"i": (0, 4)}, value)])
    given = {"T": counting(3), "I": np.array([2, -5, 0, -1])}
    assert evaluate(program, given)["O"].values.tolist() == [3, -1, 1, -1]


# --- arguments -----------------------------------------------------------------------------------------------


def test_arguments_must_fit_the_specialization() -> None:
    program = lookup(4, 5, 3)
    table, indices = np.ones((10, 3), np.float32), np.zeros((4, 5), np.int32)
    with pytest.raises(ArgumentError, match=r"f: argument I is missing; pass an array of shape \(4, 5\)"):
        evaluate(program, {"LUT": table})
    wrong_shape = r"f: argument I must be int32 of shape \(4, 5\), got int32 of shape \(5, 4\)"
    with pytest.raises(ArgumentError, match=wrong_shape):
        evaluate(program, {"LUT": table, "I": indices.T})
    with pytest.raises(ArgumentError, match=r"argument LUT must be float32 of shape \(10, 3\), got float64"):
        evaluate(program, {"LUT": table.astype(np.float64), "I": indices})


def test_strided_arguments_are_read_in_place() -> None:
    source, output = tensor("A", "int32", (4, 3)), tensor("O", "int32", (4, 3), Role.OUTPUT)
    program = specialize(
        [source, output], [statement(output, ["i", "j"], {"i": (0, 4), "j": (0, 3)}, read(source, "i", "j"))]
    )
    a = counting(3, 8).T[::-2]
    np.testing.assert_array_equal(evaluate(program, {"A": a})["O"].values, a)


def test_what_a_specialization_rules_out_is_refused() -> None:
    output = tensor("O", "int32", (2,), Role.OUTPUT)
    outside = statement(output, ["i"], {"i": (0, 3)}, literal(1, "int32"))
    with pytest.raises(IndexError, match="statement S_O writes outside O"):
        evaluate(specialize([output], [outside]), {})
    symbolic = statement(output, ["i"], {"i": (0, SizeReference("N"))}, literal(1, "int32"))
    with pytest.raises(ValueError, match="size N is still symbolic: only specialized programs can be evaluated"):
        evaluate(specialize([output], [symbolic]), {})
    untyped = statement(output, ["i"], {"i": (0, 2)}, call("exp", literal(1, "int32")))
    with pytest.raises(ValueError, match="exp has no integer result"):
        evaluate(specialize([output], [untyped]), {})
