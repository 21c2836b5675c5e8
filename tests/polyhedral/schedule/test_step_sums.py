"""Steps of a scan that add several terms: the programs that result, what they compute, and what their proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.session import isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Statement,
    in_terms_of,
)
from tc.language.program.specialization import Specialization
from tc.language.text.print_program import program_text
from tc.polyhedral.ir.scans import Grown, Scan, StepSums
from tc.polyhedral.proof.verify_scans import find_wrong_scan, prove_scans
from tc.polyhedral.schedule.scan import scan_reductions
from tc.reference.compare import compare
from tests.turns import one_in

TABLE = "y(i,j) +=! x(k,l) where i in 0:N, j in 0:M, k in 0:i+1, l in 0:j+1"


def specialized(body: str, shape: tuple[int, ...] = (7, 9), type: str = "float") -> Specialization:
    return tc.define(f"def f({type}(N,M) x) -> (y) {{ {body} }}").single().specialize(shape)


def rounds(original: Specialization) -> list[tuple[Specialization, tuple[Grown, ...]]]:
    """Every round of scans, proven."""
    found: list[tuple[Specialization, tuple[Grown, ...]]] = []
    with isl_context() as context:
        while True:
            changed, scans = scan_reductions(original, context)
            prove_scans(original, changed, scans, context)
            if not scans:
                return found
            found.append((changed, scans))
            original = changed


def test_what_a_step_adds_is_reduced_before() -> None:
    (first, (sums,)), (second, scans) = rounds(specialized(TABLE))
    assert [line.strip() for line in program_text(first.program).splitlines()[1:-1]] == [
        "y_steps(i, j) +=! float64(x(i, l)) where i in 0:7, j in 0:9, l in 0:9, j + -1 * l >= 0",
        "y(i, j) +=! y_steps(i_step, j) where i in 0:7, j in 0:9, i_step in 0:i + 1",
    ]
    assert isinstance(sums, StepSums)
    assert str(sums) == "S0 reduces what each step along i adds, y_steps"
    assert all(isinstance(scan, Scan) for scan in scans)
    assert second.layouts["y_steps_carry"].shape == (7,)
    assert second.layouts["y_carry"].shape == (9,)


CASES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a table": (TABLE, lambda x: x.cumsum(0).cumsum(1)),
    "exclusive": (
        "y(i,j) +=! x(k,l) where i in 0:N, j in 0:M, k in 0:i, l in 0:j+1",
        lambda x: (x.cumsum(0) - x).cumsum(1),
    ),
    "from the other end": (
        "y(i,j) max=! x(k,l) where i in 0:N, j in 0:M, k in i:N, l in j:M",
        lambda x: np.maximum.accumulate(np.maximum.accumulate(x[::-1, ::-1], 0), 1)[::-1, ::-1],
    ),
    "whole rows": ("y(i) +=! x(k,l) where i in 0:N, k in 0:i+1", lambda x: x.sum(1).cumsum()),
    "several columns": (
        "y(n,i) +=! x(n,j) where i in 0:M/3, j in 0:3*i+3",
        lambda x: x.cumsum(1)[:, 2 :: 3],
    ),
    "some terms before the first step": (
        "y(n,i) +=! x(n,j) where i in 0:(M-3)/2, j in 0:2*i+3",
        lambda x: x.cumsum(1)[:, 2:][:, : 2 * ((x.shape[1] - 3) // 2) : 2],
    ),
    "a mask": ("y(i) *=! k <= i ? x(k,l) : 1 where i in 0:N, k in 0:N", lambda x: x.prod(1).cumprod()),
    "an update": (
        "y(i,j) = x(i,j)  y(i,j) += x(k,l) where k in 0:i+1, l in 0:j+1",
        lambda x: x.cumsum(0).cumsum(1) + x,
    ),
    "what follows": (
        TABLE.replace("y", "s") + "  y(i,j) = s(i+2,j+2) - s(i,j+2) - s(i+2,j) + s(i,j)",
        lambda x: x[1:-1, 1:-1] + x[2:, 1:-1] + x[1:-1, 2:] + x[2:, 2:],
    ),
}  # fmt: skip


@one_in(3)
@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str, target: str) -> None:
    body, expected = CASES[name]
    f = tc.define(f"def f(float(N,M) x) -> (y) {{ {body} }}").single()
    x = np.random.default_rng(1).uniform(0.5, 1.5, (11, 14)).astype(np.float32)
    found = np.asarray(f(x, target=target))
    assert compare(f.oracle(x)["y"], found).ok
    np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_proven(name: str) -> None:
    first, *others = rounds(specialized(CASES[name][0]))
    assert any(isinstance(scan, StepSums) for scan in first[1])
    assert any(isinstance(scan, Scan) for _, scans in others for scan in scans)


@one_in(3)
@pytest.mark.parametrize("type", ["half", "double", "int32", "uint8", "bool"])
def test_types(type: str) -> None:
    f = tc.define(f"def f({type}(N,M) x) -> (y) {{ {TABLE.replace('+=!', 'max=!' if type == 'bool' else '+=!')} }}")
    dtype = {"half": "float16", "double": "float64"}.get(type, type)
    x = np.random.default_rng(2).integers(0, 2, (9, 13)).astype(dtype)
    assert compare(f.single().oracle(x)["y"], np.asarray(f(x))).ok


def test_sizes_may_stay_open() -> None:
    f = tc.define("def f(float(N,M) x) -> (y) { y(i) +=! x(k,l) where i in 0:N, k in 0:i+1 }").single()
    kernel = f.compile((tc.dynamic(40), 5))
    for rows in (1, 2, 17, 40):
        x = np.random.default_rng(rows).standard_normal((rows, 5), np.float32)
        assert compare(f.oracle(x)["y"], np.asarray(kernel(x))).ok


def test_sums_of_steps_stand_in_the_blocks_of_their_statement() -> None:
    """And are made anew in every step of these."""
    f = tc.define(
        "def f(float(N,M) x, int T) -> (z) { z(0,i,j) = x(i,j)"
        "  for t in 0:3 { z(t+1,i,j) +=! 0.1 * z(t,k,l) where i in 0:N, j in 0:M, k in 0:i+1, l in 0:j+1 } }"
    ).single()
    x = np.random.default_rng(3).standard_normal((6, 5), np.float32)
    for target in ("cpu", "emulator"):
        assert compare(f.oracle(x, 3)["z"], np.asarray(f(x, 3, target=target))).ok


# --- the proof


def changed_statement(number: int, change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    def mutate(program: Program) -> Program:
        statements = list(program.statements)
        statements[number] = change(statements[number])
        return replace(program, statements=tuple(statements))

    return mutate


def bounded(name: str, change: int) -> Callable[[Statement], Statement]:
    """With the end of a loop moved."""

    def changed(statement: Statement) -> Statement:
        return replace(
            statement,
            iterators=tuple(
                replace(i, end=Binary(BinaryOperator.ADD, i.end, Literal(change, INDEX_TYPE), INDEX_TYPE))
                if i.name == name
                else i
                for i in statement.iterators
            ),
        )

    return changed


def read_at(*names: str) -> Callable[[Statement], Statement]:
    """What it reads, it reads there."""

    def changed(statement: Statement) -> Statement:
        assert isinstance(statement.value, Read)
        return replace(statement, value=replace(statement.value, subscripts=tuple(map(IteratorReference, names))))

    return changed


def of_another_row(statement: Statement) -> Statement:
    return replace(statement, value=in_terms_of(statement.value, {"i": IteratorReference("j")}))


EACH, TOTAL = range(2)
MUTANTS: dict[str, Callable[[Program], Program]] = {
    "sums are lost": lambda p: replace(p, statements=p.statements[1:]),
    "sums go nowhere": lambda p: replace(p, statements=p.statements[:1]),
    "totals before sums": lambda p: replace(p, statements=p.statements[::-1]),
    "a term too few": changed_statement(EACH, bounded("l", -1)),
    "terms of another row": changed_statement(EACH, of_another_row),
    "terms of other elements": changed_statement(EACH, lambda s: replace(s, conditions=())),
    "a sum too few": changed_statement(EACH, bounded("i", -1)),
    "sums that go on": changed_statement(EACH, lambda s: replace(s, initialize=False)),
    "another reduction of terms": changed_statement(EACH, lambda s: replace(s, reduction=Reduction.MAXIMUM)),
    "another reduction of sums": changed_statement(TOTAL, lambda s: replace(s, reduction=Reduction.MAXIMUM)),
    "sums of another step": changed_statement(TOTAL, read_at("i", "j")),
    "the last step is missing": changed_statement(TOTAL, bounded("i_step", -1)),
    "an element too few": changed_statement(TOTAL, bounded("i", -1)),
    "another element": changed_statement(TOTAL, lambda s: replace(s, subscripts=s.subscripts[::-1])),
    "an update": changed_statement(TOTAL, lambda s: replace(s, initialize=False)),
    "in a block": changed_statement(TOTAL, lambda s: replace(s, blocks=(0,))),
    "narrow sums": lambda p: replace(
        p, tensors=tuple(replace(t, type=tc.ScalarType.FLOAT16) if t.name == "y_steps" else t for t in p.tensors)
    ),
    "sums that others see": lambda p: replace(
        p, statements=(*p.statements, replace(p.statements[1], name="S9", target="z"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS)
def test_mutants_are_refused(mutate: Callable[[Program], Program]) -> None:
    original = specialized(TABLE, (9, 9))
    with isl_context() as context:
        changed, done = scan_reductions(original, context)
        assert find_wrong_scan(original, changed, done, context) is None
        mutant = replace(changed, program=mutate(changed.program))
        assert find_wrong_scan(original, mutant, done, context) is not None


def test_the_term_that_is_wrong_is_shown() -> None:
    original = specialized(TABLE, (3, 4))
    with isl_context() as context:
        changed, done = scan_reductions(original, context)
        mutant = replace(changed, program=changed_statement(EACH, bounded("l", -1))(changed.program))
        found = find_wrong_scan(original, mutant, done, context)
    assert str(found) == "an instance never runs: a term of S0: [2, 3] has [3, 0, 3]"


def test_a_lie_about_what_was_done_is_refused() -> None:
    original = specialized(TABLE, (5, 5))
    with isl_context() as context:
        changed, (done,) = scan_reductions(original, context)
        assert isinstance(done, StepSums)
        for lie in (
            replace(done, iterator="k"),
            replace(done, sums="x"),
            replace(done, total=done.each),
            replace(done, values={}),
        ):
            assert find_wrong_scan(original, changed, (lie,), context) is not None


def test_elements_that_may_have_no_step_at_all_are_left_alone() -> None:
    """Whether there is one depends on an open size alone; elements are initialized in any case."""
    f = tc.define("def f(float(H,P,P) x) -> (y) { y(m,l) max=! x(i,k,l) where m in 0:P, k > m }").single()
    f.compile((2, tc.dynamic(2), tc.dynamic(2)))
    for extent in (1, 2):
        x = np.arange(2 * extent * extent, dtype=np.float32).reshape(2, extent, extent)
        assert compare(f.oracle(x)["y"], np.asarray(f(x))).ok
    with isl_context() as context:
        original = f.specialize((2, tc.dynamic(2), tc.dynamic(2)))
        changed, scans = scan_reductions(original, context)
        assert (changed, scans) == (original, ())
