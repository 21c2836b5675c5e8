"""Scans: which reductions are computed so, the programs that result, and what their proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.session import isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Statement,
    rebuild,
)
from tc.language.program.specialization import Specialization
from tc.language.text.print_program import program_text
from tc.polyhedral.ir.scans import Scan
from tc.polyhedral.proof.verify_scans import find_wrong_scan, prove_scans
from tc.polyhedral.schedule.scan import Scanning, scan_reductions

SUMS = "def sums(float(N,M) x) -> (y) { y(n,i) +=! x(n,j) where i in 0:M, j in 0:i+1 }"


def specialized(text: str, *shapes: tuple[int, ...]) -> Specialization:
    return tc.define(text).single().specialize(*shapes)


def scanned(original: Specialization) -> tuple[Specialization, int]:
    """The program with scans, which are proven, and their number."""
    with isl_context() as context:
        changed, scans = scan_reductions(original, context)
        prove_scans(original, changed, scans, context)
    return changed, len(scans)


def lines(original: Specialization) -> list[str]:
    """A line for each statement, with the ranges of all its iterators."""
    program = scanned(original)[0].program
    program = replace(program, statements=tuple(replace(s, blocks=()) for s in program.statements))
    return [line.strip() for line in program_text(program).splitlines()[1:-1]]


def test_the_result_is_a_block_of_a_carry() -> None:
    assert lines(specialized(SUMS, (5, 9))) == [
        "y_carry(n) = 0.0 where n in 0:5",
        "y_carry(n) += float64(x(n, i)) where i in 0:9, n in 0:5",
        "y(n, i) = float32(y_carry(n)) where i in 0:9, n in 0:5",
    ]
    clear, add, store = scanned(specialized(SUMS, (5, 9)))[0].program.statements
    assert (clear.blocks, add.blocks, store.blocks) == ((), (0,), (0,))


@pytest.mark.parametrize(
    ("text", "adds", "stores"),
    [
        ("y(i) +=! x(j) where i in 0:N, j in 0:i", "x(i - 1)) where i in 0:9, i - 1 >= 0", "y(i) = "),
        ("y(i) max=! x(j) where i in 0:N, j in i:N", "x(8 - i_step) where i_step in 0:9", "y(8 - i_step) = "),
        ("y(i) +=! x(j) where i in 0:N, j in 0:N, j <= i", "x(i)) where i in 0:9", "y(i) = "),
        ("y(i) *=! x(2*j) where i in 0:N/2, j in 0:i+1", "x(2 * i) where i in 0:4", "y(i) = "),
        ("y(i) +=! x(j) where i in 0:N/2, j in 0:2*i+1, j%2 == 0", "x(2 * i)) where i in 0:4", "y(i) = "),
        ("y(2*i) = 0 where i in 0:5 y(2*i+1) +=! x(j) where i in 0:4, j in 0:i+1", "x(i)) where", "y(2 * i + 1) = "),
    ],
)
def test_what_is_a_scan(text: str, adds: str, stores: str) -> None:
    *_, add, store = lines(specialized(f"def f(float(N) x) -> (y) {{ {text} }}", (9,)))
    assert adds in add
    assert store.startswith(stores)


def test_what_the_first_element_has_is_added_before() -> None:
    text = "def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:N-3, j in 0:i+4 }"
    assert lines(specialized(text, (9,)))[1:3] == [
        "y_carry() += float64(x(j)) where j in 0:4",
        "y_carry() += float64(x(i + 3)) where i in 0:6, i - 1 >= 0",
    ]


def test_an_update_goes_on_from_what_there_is() -> None:
    text = "def f(half(N) x) -> (y) { y(i) = x(i)  y(i) += x(j) where i in 0:N, j in 0:i }"
    assert lines(specialized(text, (9,)))[-1] == "y(i) = float16(float64(y(i)) + y_carry) where i in 1:9"


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N) x) -> (y) { y(i) +=! x(j) * i where i in 0:N, j in 0:i+1 }",
        "def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:N-2, j in i:i+3 }",
        "def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:N, j in 0:N }",
        "def f(float(N) x) -> (y) { y(i) +=! x(i-j) where i in 0:N, j in 0:i+1 }",
        "def f(float(N) x) -> (y) { y(i/2) +=! x(j) where i in 0:8, j in 0:i+1 }",
        "def f(float(N) x) -> (y) { y() +=! x(j) }",
        "def f(float(N) x) -> (y) { y(i) +=! j <= i ? x(j) : 1 where i in 0:N, j in 0:N }",
    ],
)
def test_what_is_none(text: str) -> None:
    original = specialized(text, (9,))
    changed, found = scanned(original)
    assert (changed.program, found) == (original.program, 0)


def test_sizes_may_stay_open() -> None:
    comprehension = tc.define(SUMS).sums
    changed, found = scanned(comprehension.specialize((tc.dynamic(64), 9)))
    assert found == 1
    assert changed.layouts["y_carry"].shape == (64,)


# --- the proof


def changed_statement(number: int, change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    def mutate(program: Program) -> Program:
        statements = list(program.statements)
        statements[number] = change(statements[number])
        return replace(program, statements=tuple(statements))

    return mutate


def shorter(statement: Statement) -> Statement:
    first, *others = statement.iterators
    assert isinstance(first.end, Literal)
    return replace(statement, iterators=(replace(first, end=Literal(int(first.end.value) - 1, INDEX_TYPE)), *others))


def early(statement: Statement) -> Statement:
    """Without the last step."""
    before = Binary(BinaryOperator.LESS, IteratorReference("i"), Literal(8, INDEX_TYPE), tc.ScalarType.BOOL)
    return replace(statement, conditions=(before,))


def shifted(statement: Statement) -> Statement:
    def one_on(expression: Expression) -> Expression:
        if isinstance(expression, Read):
            last = Binary(BinaryOperator.ADD, expression.subscripts[-1], Literal(1, INDEX_TYPE), INDEX_TYPE)
            return replace(expression, subscripts=(*expression.subscripts[:-1], last))
        return rebuild(expression, one_on)

    return replace(statement, value=one_on(statement.value))


def fewer(statement: Statement) -> Statement:
    """Without the last iteration of its last loop."""
    *others, last = statement.iterators
    assert isinstance(last.end, Literal)
    return replace(statement, iterators=(*others, replace(last, end=Literal(int(last.end.value) - 1, INDEX_TYPE))))


def inclusive(statement: Statement) -> Statement:
    """With one more iteration of its last loop."""
    *others, last = statement.iterators
    more = Binary(BinaryOperator.ADD, last.end, Literal(1, INDEX_TYPE), INDEX_TYPE)
    return replace(statement, iterators=(*others, replace(last, end=more)))


def turned(statement: Statement) -> Statement:
    """What it reads, it reads for another row."""
    assert isinstance(statement.value, Read)
    first, *others = statement.value.subscripts
    other = Binary(BinaryOperator.SUBTRACT, Literal(8, INDEX_TYPE), first, INDEX_TYPE)
    return replace(statement, value=replace(statement.value, subscripts=(other, *others)))


def without(number: int) -> Callable[[Program], Program]:
    return lambda program: replace(
        program, statements=(*program.statements[:number], *program.statements[number + 1 :])
    )


def exchanged(program: Program) -> Program:
    clear, add, store = program.statements
    return replace(program, statements=(clear, store, add))


CLEAR, ADD, STORE = range(3)
MUTANTS: dict[str, Callable[[Program], Program]] = {
    "a carry that is lost": without(ADD),
    "a carry that is not begun": without(CLEAR),
    "a result that is not stored": without(STORE),
    "stored before it is added": exchanged,
    "begun with something else": changed_statement(CLEAR, lambda s: replace(s, value=Literal(1.0, s.value.type))),
    "begun too seldom": changed_statement(CLEAR, shorter),
    "a step too few": changed_statement(ADD, early),
    "steps of two kinds": changed_statement(ADD, shorter),
    "an element too few": changed_statement(STORE, shorter),
    "another term": changed_statement(ADD, shifted),
    "another element": changed_statement(STORE, lambda s: replace(s, subscripts=s.subscripts[::-1])),
    "another reduction": changed_statement(ADD, lambda s: replace(s, reduction=Reduction.MAXIMUM)),
    "begun anew in every step": changed_statement(ADD, lambda s: replace(s, initialize=True)),
    "not in steps": changed_statement(ADD, lambda s: replace(s, blocks=())),
    "in a block of its own": changed_statement(ADD, lambda s: replace(s, blocks=(7,))),
    "a wrong start": changed_statement(
        ADD,
        lambda s: replace(s, iterators=(replace(s.iterators[0], begin=Literal(1, INDEX_TYPE)), *s.iterators[1:])),
    ),
    "added twice": lambda program: replace(
        program, statements=(*program.statements[:2], replace(program.statements[1], name="S1"), program.statements[2])
    ),
    "an argument is lost": lambda program: replace(program, tensors=program.tensors[1:]),
}  # fmt: skip


def wrong(
    text: str, mutate: Callable[[Program], Program], *shapes: tuple[int, ...], scanning: Scanning | None = None
) -> object:
    original = specialized(text, *shapes)
    with isl_context() as context:
        changed, scans = scan_reductions(original, context, scanning)
        mutant = replace(changed, program=mutate(changed.program))
        return find_wrong_scan(original, mutant, scans, context)


@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS)
def test_mutants_are_refused(mutate: Callable[[Program], Program]) -> None:
    assert wrong(SUMS, lambda program: program, (9, 9)) is None
    assert wrong(SUMS, mutate, (9, 9)) is not None


def test_the_term_that_is_wrong_is_shown() -> None:
    found = wrong(SUMS, changed_statement(ADD, early), (5, 9))
    assert str(found) == "an instance never runs: a term of S0: [0, 8] has [0, 8]"


def test_other_values_of_iterators_are_a_lie() -> None:
    """What is added is said to be another term than it is."""
    original = specialized(SUMS, (5, 9))
    with isl_context() as context:
        changed, (scan,) = scan_reductions(original, context)
        assert isinstance(scan, Scan)
        for lie in (
            replace(scan, values={"j": Literal(0, INDEX_TYPE)}),
            replace(scan, place=Literal(0, INDEX_TYPE)),
            replace(scan, iterator="n"),
            replace(scan, carry="x"),
        ):
            assert find_wrong_scan(original, changed, (lie,), context) is not None
        with pytest.raises(tc.VerificationError, match=r"^the scans are not proven correct: "):
            prove_scans(original, changed, (replace(scan, iterator="n"),), context)


def test_a_narrow_carry_is_refused() -> None:
    original = specialized("def f(half(N) x) -> (y) { y(i) max=! x(j) where i in 0:N, j in 0:i+1 }", (9,))
    with isl_context() as context:
        changed, scans = scan_reductions(original, context)
        tensors = tuple(
            replace(t, type=tc.ScalarType.FLOAT16) if t.name == "y_carry" else t for t in changed.program.tensors
        )
        mutant = replace(changed, program=replace(changed.program, tensors=tensors))
        found = find_wrong_scan(original, mutant, scans, context)
    assert str(found) == "a statement is not what the program says: y_carry is not of S0 alone"


# --- in blocks


IN_BLOCKS = Scanning(rows=100, steps=4, least=5)
BLOCKS: dict[str, Callable[[Program], Program]] = {
    "what blocks have is not begun": without(0),
    "what blocks have is lost": without(1),
    "what blocks before have is lost": without(2),
    "carries that are lost": without(3),
    "nothing is stored": without(4),
    "a block too few is begun": changed_statement(0, fewer),
    "a block adds another term": changed_statement(1, shifted),
    "a block adds too few terms": changed_statement(1, fewer),
    "a block begins with its own terms": changed_statement(2, inclusive),
    "a block begins with those of another row": changed_statement(2, turned),
    "blocks are combined by another reduction": changed_statement(2, lambda s: replace(s, reduction=Reduction.MAXIMUM)),
    "carries begin anywhere": changed_statement(2, lambda s: replace(s, initialize=False)),
    "steps add another term": changed_statement(3, shifted),
    "results go elsewhere": changed_statement(4, lambda s: replace(s, subscripts=s.subscripts[::-1])),
    "no end": changed_statement(4, lambda s: replace(s, conditions=())),
}  # fmt: skip


@pytest.mark.parametrize("mutate", BLOCKS.values(), ids=BLOCKS)
def test_mutants_in_blocks_are_refused(mutate: Callable[[Program], Program]) -> None:
    assert wrong(SUMS, lambda program: program, (11, 11), scanning=IN_BLOCKS) is None
    assert wrong(SUMS, mutate, (11, 11), scanning=IN_BLOCKS) is not None


@pytest.mark.parametrize("range", ["0:i+1", "0:i", "i:M", "i+1:M"])
@pytest.mark.parametrize("columns", [9, 12, 13])
def test_blocks_hold_what_is_left_over(range: str, columns: int) -> None:
    original = specialized(SUMS.replace("0:i+1", range), (5, columns))
    with isl_context() as context:
        changed, (scan,) = scan_reductions(original, context, IN_BLOCKS)
        assert isinstance(scan, Scan)
        assert scan.blocks is not None
        prove_scans(original, changed, (scan,), context)
        # What is carried from block to block is a scan, too, and then nothing is left.
        again, (between,) = scan_reductions(changed, context)
        assert between.statement == scan.blocks.before
        prove_scans(changed, again, (between,), context)
        assert scan_reductions(again, context)[1] == ()


def test_blocks_are_of_one_length_if_possible() -> None:
    assert [Scanning(1, 64, 256).length(steps) for steps in (1000, 1024, 10_007, 300)] == [50, 64, 64, 60]
    assert [Scanning(8, 64, 256).divides(rows, steps) for rows, steps in ((7, 256), (8, 256), (7, 255), (1, None))] == [
        True,
        False,
        False,
        False,
    ]


def test_what_takes_too_long_to_show_is_computed_element_by_element() -> None:
    f = tc.define("""
    def f(int(S,L,S,L) A) -> (O) {
        B(ii, m, l, 2 * j) = ii
        B(i, j, k, 2 * l + 1) = A(i, j, k, l)
        O(m, l, i) +=! q where m in 0:B.2, k > m, q = B(i, j, k, l) * A(k, j, i, i)
    }""").single()
    given = np.arange(2 * 3 * 2 * 3, dtype=np.int32).reshape(2, 3, 2, 3)
    kernel = f.compile((2, tc.dynamic(4), 2, tc.dynamic(4)))
    np.testing.assert_array_equal(kernel(given), f.reference(given))
