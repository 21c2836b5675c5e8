"""Rows that an index chooses, in memory that the threads of a block share (paper, Section 5.5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.session import isl_context
from tc.language.program.program import INDEX_TYPE, Binary, Expression, Literal, Read, rebuild, walk
from tc.polyhedral.analysis.box import bounding_box
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.gpu.promotion.linearize_copies import linearize_copies
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.gathered import Gathered
from tc.polyhedral.ir.loops import Sharing
from tc.polyhedral.ir.scop import Scop, build_scop, reads_by_position
from tc.polyhedral.proof.verify import find_counterexample
from tc.polyhedral.proof.verify_statements import find_changed_statement
from tc.polyhedral.schedule.schedule import untransformed_tree
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, promote_accesses
from tc.reference.compare import compare
from tests.turns import every_row, one_in

ROWS = "def rows(float(E,D) T, int32(B) I, float(N,D) W) -> (O) { O(b,n) +=! T(I(b), d) * W(n,d) }"
VALUED = "def f(float(E,D) T, int32(B) I, float(N,D) W) -> (O) { O(b,n) +=! T(I(b), d) * (W(n,d) + float(I(b))) }"
OPTIONS = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 4))


def arrays(text: str, e: int, *indices: tuple[int, ...], d: int, others: tuple[tuple[int, ...], ...]) -> list[object]:
    rng = np.random.default_rng(len(text))
    table = rng.standard_normal((e, d), np.float32)
    chosen = [rng.integers(0, e, shape).astype(np.int32) for shape in indices]
    return [table, *chosen, *(rng.standard_normal(shape, np.float32) for shape in others)]


@one_in(3)
@pytest.mark.parametrize("stages", [1, 2, None])
@pytest.mark.parametrize(
    ("text", "indices", "others", "copied"),
    every_row(
        2,
        [
            (ROWS, ((13,),), ((11, 10),), ["T", "W"]),
            (
                "def f(float(E,D) T, int32(B) I, int32(N) J) -> (O) { O(b,n) +=! T(I(b), d) * T(J(n), d) }",
                ((13,), (11,)),
                (),
                ["T", "T"],
            ),
            (
                "def f(float(E,D) T, int32(B,K) I, float(N,K,D) W) -> (O) { O(b,n) +=! T(I(b,k), d) * W(n,k,d) }",
                ((7, 5),),
                ((9, 5, 10),),
                ["T", "W"],
            ),
            (  # the same row for all, and an index that is used as a value, too
                VALUED,
                ((13,),),
                ((11, 10),),
                ["T", "W", "I"],
            ),
        ],
    ),
)
def test_what_an_index_chooses_is_copied_once(
    text: str,
    indices: tuple[tuple[int, ...], ...],
    others: tuple[tuple[int, ...], ...],
    copied: list[str],
    stages: int | None,
) -> None:
    comprehension = tc.define(text).single()
    given = arrays(text, 17, *indices, d=10, others=others)
    options = replace(OPTIONS, stages=stages)
    source = comprehension.compile(*given, target="emulator", options=options).source
    found = comprehension(*given, target="emulator", options=options)
    assert compare(comprehension.oracle(*given)["O"], np.asarray(found)).ok
    assert sorted(set(re.findall(r"\*(t_shared\d+_\w+) =", source))) == [
        f"t_shared{number}_{name}" for number, name in enumerate(copied, 1)
    ]
    multiplied = [line for line in source.splitlines() if "accumulator" in line or "t_private0_O" in line]
    assert not any("t_T[" in line for line in multiplied)


@pytest.mark.parametrize(
    ("arguments", "statement"),
    [
        # Each row is for one thread.
        ("float(E,D) T, int32(B,K) I", "O(b,d) +=! T(I(b,k), d)"),
        # Nothing says that an index that is not asked for is one.
        ("float(E,D) T, int32(B) I, float(N,D) W", "O(b,n) +=! (W(n,d) > 0.0 ? T(I(b), d) : 0.0) * W(n,d)"),
        # The table is made here.
        ("int32(B) I, float(N,D) W", "T(n,d) = W(n,d) + 1.0  O(b,n) +=! T(I(b), d) * W(n,d)"),
    ],
)
def test_other_rows_stay_where_they_are(arguments: str, statement: str) -> None:
    results = "T, O" if "T(n,d) =" in statement else "O"
    comprehension = tc.define(f"def f({arguments}) -> ({results}) {{ {statement} }}").single()
    shapes = {"T": (17, 10), "I": (13, 5) if "B,K" in arguments else (13,), "W": (11, 10)}
    given = [shapes[name] for name in comprehension.program.arguments]
    source = comprehension.compile(*given, target="emulator", options=OPTIONS).source
    assert not re.search(r"t_shared\d+_T\b", source)


def test_an_index_out_of_range_is_that_of_the_statement() -> None:
    comprehension = tc.define(ROWS).single()
    table, index, weights = arrays(ROWS, 17, (13,), d=10, others=((11, 10),))
    assert isinstance(index, np.ndarray)
    index[3] = 17
    message = r"^rows: an index into dimension 0 of T is outside of 0:17 \(statement S0\); the results are undefined$"
    with pytest.raises(tc.ArgumentError, match=message):
        comprehension(table, index, weights, target="emulator", options=OPTIONS)


# --- mistakes


def promoted(context: isl.Context, *, numbered: bool) -> tuple[Scop, Scop]:
    """The statements of the program, and these with one copy of all rows that are chosen."""
    program = build_scop(tc.define(ROWS).single().specialize((17, 10), (13,), (11, 10)), context)
    statement = program.statement("S0")
    (_, own), *_ = reads_by_position(statement, ())
    gathered = Gathered("gathered0", own.read, statement.body.iterators)
    box = bounding_box([gathered.relation(statement.domain)], ())
    assert box is not None
    assert box.extents == (13, 10)
    found = promote_accesses(
        program,
        Footprint((Access("S0", 0),), (), box, gathered),
        Placement("rows", (0, 1), Sharing.BLOCK, padding=0),
        stored=False,
    )
    assert found.loads is not None
    scop = linearize_copies(found.scop, found.loads, box.extents)[0] if numbered else found.scop
    return program, scop


def in_copy(change: Callable[[Read], Expression]) -> Callable[[Scop], Scop]:
    def mutate(scop: Scop) -> Scop:
        copy = next(s for s in scop.statements if s.name == scop.promotions[0].loads)
        assert isinstance(copy.body.value, Read)
        changed = replace(copy, body=replace(copy.body, value=change(copy.body.value)))
        return replace(scop, statements=tuple(changed if s is copy else s for s in scop.statements))

    return mutate


def beside(expression: Expression) -> Expression:
    return Binary(BinaryOperator.ADD, expression, Literal(1, INDEX_TYPE), INDEX_TYPE)


def of_another_index(read: Read) -> Read:
    """The row that the next index chooses."""

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Read):
            return replace(expression, subscripts=tuple(beside(s) for s in expression.subscripts))
        return rebuild(expression, change)

    return replace(read, subscripts=(change(read.subscripts[0]), *read.subscripts[1:]))


def in_promotion(change: Callable[[Gathered], Gathered]) -> Callable[[Scop], Scop]:
    def mutate(scop: Scop) -> Scop:
        (promotion,) = scop.promotions
        assert promotion.gathered is not None
        return replace(scop, promotions=(replace(promotion, gathered=change(promotion.gathered)),))

    return mutate


MISTAKES: dict[str, Callable[[Scop], Scop]] = {
    "another column": in_copy(lambda read: replace(read, subscripts=(read.subscripts[0], beside(read.subscripts[1])))),
    "another index": in_copy(of_another_index),
    "another row": in_copy(lambda read: replace(read, subscripts=(beside(read.subscripts[0]), read.subscripts[1]))),
    "the index itself": in_copy(lambda read: read.subscripts[1]),
    "another table": in_copy(lambda read: replace(read, tensor="W")),
    "what the statement never read": in_promotion(
        lambda gathered: replace(gathered, read=of_another_index(gathered.read))
    ),
    "iterators in another order": in_promotion(
        lambda gathered: replace(gathered, iterators=("n", "b", *gathered.iterators[2:]))
    ),
    "a plain copy": lambda scop: replace(scop, promotions=(replace(scop.promotions[0], gathered=None),)),
}


@pytest.mark.parametrize("numbered", [False, True])
def test_what_is_copied_is_what_was_read(numbered: bool) -> None:
    with isl_context() as context:
        program, scop = promoted(context, numbered=numbered)
        assert find_changed_statement(program, scop) is None
        for name, mutate in MISTAKES.items():
            assert find_changed_statement(program, mutate(scop)) is not None, name


def copied(text: str, shapes: tuple[tuple[int, ...], ...], name: str, context: isl.Context) -> tuple[Scop, Scop]:
    """A program, and the same where a statement reads copies of its first gather, whatever a pass would say of that."""
    program = build_scop(tc.define(text).single().specialize(*shapes), context)
    statement = program.statement(name)
    own = next(own for _, own in reads_by_position(statement, ()) if len(list(walk(own.read))) > 2)
    gathered = Gathered("gathered0", own.read, statement.body.iterators)
    box = bounding_box([gathered.relation(statement.domain)], ())
    assert box is not None
    order = tuple(range(len(box.extents)))
    found = promote_accesses(
        program,
        Footprint((Access(name, 0),), (), box, gathered),
        Placement("rows", order, Sharing.BLOCK, padding=0),
        stored=False,
    )
    return program, found.scop


@pytest.mark.parametrize(
    ("text", "shapes", "name"),
    [
        ("def f(float(E,D) T, int32(B) J) -> (I, O) { I(b) = J(b) + 1  O(b,d) = T(I(b), d) }", ((9, 4), (5,)), "S1"),
        ("def f(int32(B) I, float(N,D) W) -> (T, O) { T(n,d) = W(n,d)  O(b,d) = T(I(b), d) }", ((5,), (9, 4)), "S1"),
    ],
)
def test_tables_and_indices_that_change_are_not_copied(
    text: str, shapes: tuple[tuple[int, ...], ...], name: str
) -> None:
    with isl_context() as context:
        _, scop = copied(text, shapes, name, context)
        found = find_counterexample(scop, tree_execution(untransformed_tree(scop), context))
        assert found is not None
        assert found.violation is Violation.BYPASSED
        assert "is not constant" in found.witness


def test_what_is_read_on_a_condition_is_not_copied() -> None:
    text = "def f(float(E) T, int32(B) I) -> (O) { O(b) = b >= 1 ? T(I(b - 1)) : 0.0 }"
    with isl_context() as context:
        program, scop = copied(text, ((9,), (5,)), "S0", context)
        assert find_changed_statement(program, scop) is not None


def test_a_row_has_the_type_of_the_table() -> None:
    with isl_context() as context:
        program, scop = promoted(context, numbered=False)

        def change(expression: Expression) -> Expression:
            if isinstance(expression, Read) and expression.tensor == "rows":
                return replace(expression, type=tc.ScalarType.INT8)
            return rebuild(expression, change)

        (user,) = (s for s in scop.statements if s.name == "S0")
        changed = replace(user, body=replace(user.body, value=change(user.body.value)))
        wrong = replace(scop, statements=tuple(changed if s is user else s for s in scop.statements))
        assert find_changed_statement(program, wrong) is not None


def test_a_buffer_without_an_allocation_is_refused() -> None:
    with isl_context() as context:
        _, scop = promoted(context, numbered=False)
        found = find_counterexample(replace(scop, promotions=()), tree_execution(untransformed_tree(scop), context))
        assert found is not None


def test_tensors_may_be_called_like_what_is_gathered() -> None:
    text = "def f(float(E,D) T, int32(B) I, float(N,D) gathered1) -> (O) { O(b,n) +=! T(I(b), d) * gathered1(n,d) }"
    comprehension = tc.define(text).single()
    given = arrays(text, 17, (13,), d=10, others=((11, 10),))
    found = comprehension(*given, target="emulator", options=OPTIONS)
    assert compare(comprehension.oracle(*given)["O"], np.asarray(found)).ok
