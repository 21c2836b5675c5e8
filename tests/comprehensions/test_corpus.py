"""Every comprehension of the corpus against the oracle, and both against a formula that shares nothing with them."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import tc
from tc.language.algebra.fold import fold_constants
from tc.language.program.program import Expression, Literal, iterators_in
from tc.language.program.written_elements import written_iterators
from tc.reference.compare import compare
from tc.reference.evaluate import Result
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.comprehensions.case import Argument, Array, Case, Sizes
from tests.comprehensions.corpus import CASES
from tests.turns import SLOW, every, one_in


@functools.cache
def _definitions(text: str) -> tc.Definitions:
    return tc.define(text)


def _comprehension(case: Case) -> tc.Comprehension:
    definitions = _definitions(case.text)
    return definitions.single() if case.definition is None else definitions[case.definition]


def _calls() -> list[object]:
    """By default every fourth case at one kind of sizes, by turns: the paper's and all ragged ones.

    Cases of a kind stand together, so each kind has some.  ``pytest -m slow`` has the others.
    """
    found: list[object] = []
    for number, case in enumerate(CASES):
        kinds = (*case.ragged_sizes, case.paper_sizes)
        for turn, sizes in enumerate(kinds):
            name = "-".join((case.name, *(f"{name}{size}" for name, size in sizes.items())))
            marks = () if number % 4 == 0 and turn == number // 4 % len(kinds) else SLOW
            found.append(pytest.param(case, sizes, id=name, marks=marks))
    return found


def _roundoff(inputs: Mapping[str, Argument]) -> float:
    """Of the coarsest floating type that comes in; results may be wider than what they are made of."""
    types = [tc.ScalarType(value.dtype.name) for value in inputs.values() if isinstance(value, np.ndarray)]
    return max((type.unit_roundoff for type in types), default=0.0)


def _assert_near(values: Array, expected: Array, roundoff: float, terms: int, what: str) -> None:
    """Equal integers; floats as near as ``terms`` roundings of the largest intermediate result allow."""
    if values.dtype.kind in "biu":
        np.testing.assert_array_equal(values, expected, err_msg=what)
        return
    wanted = expected.astype(np.float64)
    tolerance = (8 + terms) * roundoff * max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    np.testing.assert_allclose(values.astype(np.float64), wanted, rtol=8 * roundoff, atol=tolerance, err_msg=what)


@pytest.mark.parametrize(("case", "sizes"), _calls())
def test_agrees_with_oracle_and_formula(case: Case, sizes: Sizes) -> None:
    comprehension, inputs, outputs = _call(case, sizes)
    formula = case.expect(inputs, outputs)
    results = _results_of_oracle(comprehension, inputs, outputs, formula)
    actual = _as_mapping(comprehension, comprehension(*inputs.values(), out=outputs or None))
    for (name, result), expected in zip(results.items(), formula, strict=True):
        comparison = compare(result, actual[name])
        assert comparison.ok, f"{name}: {comparison}"
        assert comparison.ambiguous < 0.01 or name in case.undecided, f"{name}: {comparison}"
        roundoff = max(result.type.unit_roundoff, _roundoff(inputs))
        _assert_near(actual[name], expected, 2 * roundoff, case.terms_of(sizes), name)


@one_in(3)
@pytest.mark.parametrize("case", [*every(2, CASES[1::2]), *every(len(CASES), CASES[::2])], ids=lambda case: case.name)
def test_oracle_agrees_with_formula_at_divisible_sizes(case: Case) -> None:
    """Kernels of GPUs run at these; here it is enough that the sizes fit each other."""
    comprehension, inputs, outputs = _call(case, case.divisible_sizes)
    results = _results_of_oracle(comprehension, inputs, outputs, case.expect(inputs, outputs))
    for name, result in results.items():
        comparison = compare(result, result.values.astype(numpy_dtype(result.type)))
        assert comparison.ambiguous < 0.01 or name in case.undecided, f"{name}: {comparison}"


@one_in(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tiles_divide_what_loops_have_at_divisible_sizes(case: Case) -> None:
    """The two outer loops over the results; windows and what else has one length at all sizes may be odd."""
    even, ragged = (_lengths(case, sizes) for sizes in (case.divisible_sizes, case.large_ragged_sizes))
    for statement, lengths in even.items():
        for length, other in zip(lengths, ragged[statement], strict=True):
            assert length == other or length % 8 == 0, f"{statement}: {lengths}"


def _lengths(case: Case, sizes: Sizes) -> Mapping[str, tuple[int, ...]]:
    """How many iterations the two outer loops over the results of each statement have, by its name."""
    comprehension, inputs, _ = _call(case, sizes)
    statements = comprehension.specialize(*inputs.values()).program.statements
    return {
        statement.name: tuple(
            _value(iterator.end) - _value(iterator.begin)
            for iterator in written_iterators(statement)[:2]
            if not iterators_in((iterator.begin, iterator.end))  # rows of a triangle have no one length
        )
        for statement in statements
    }


def _value(expression: Expression) -> int:
    folded = fold_constants(expression)
    assert isinstance(folded, Literal)
    return int(folded.value)


def _call(case: Case, sizes: Sizes) -> tuple[tc.Comprehension, Mapping[str, Argument], Mapping[str, Array]]:
    """The comprehension, its arguments and the initial values of its results."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    return _comprehension(case), case.make_inputs(rng, sizes), case.make_outputs(rng, sizes)


def _results_of_oracle(
    comprehension: tc.Comprehension,
    inputs: Mapping[str, Argument],
    outputs: Mapping[str, Array],
    formula: Sequence[Array],
) -> Mapping[str, Result]:
    """What the oracle computes, which must be what the formula says."""
    oracle = comprehension.oracle(*inputs.values(), out=outputs or None)
    results = {name: oracle[name] for name in comprehension.program.results}
    assert [result.values.shape for result in results.values()] == [expected.shape for expected in formula]
    for (name, result), expected in zip(results.items(), formula, strict=True):
        _assert_near(result.values, expected, 1e-9 + result.type.unit_roundoff / 64, 1, f"the oracle's {name}")
    return results


def _as_mapping(comprehension: tc.Comprehension, results: object) -> Mapping[str, Array]:
    names = comprehension.program.results
    values = results if isinstance(results, tuple) else (results,)
    return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


def test_entries_have_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
