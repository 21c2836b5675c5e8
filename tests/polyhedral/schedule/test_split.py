"""Reductions in two steps: the program that results, its values, and what its proof refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.base.grid import GridKernel
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
from tc.polyhedral.proof.verify_split import find_wrong_split, prove_split
from tc.polyhedral.schedule.split import split_reductions
from tc.reference.compare import compare
from tests.translated import translated
from tests.turns import every, every_row, one_in

SUMS = "def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }"


def specialized(text: str, *shapes: tuple[int, ...]) -> Specialization:
    return tc.define(text).single().specialize(*shapes)


def lines(program: Program) -> list[str]:
    return [line.strip() for line in program_text(program).splitlines()[1:-1]]


def test_the_result_is_a_program() -> None:
    changed, splits = split_reductions(specialized(SUMS, (5, 12)), 4)
    assert lines(changed.program) == [
        "O_parts(m, n_part) +=! X(m, 4 * n_step + n_part) where m in 0:5, n_part in 0:4, n_step in 0:3",
        "O(m) +=! O_parts(m, n_part) where m in 0:5, n_part in 0:4",
    ]
    assert [split.statement for split in splits] == ["S0"]


def test_the_last_round_may_be_short() -> None:
    changed, _ = split_reductions(specialized(SUMS, (5, 13)), 4)
    assert "4 * n_step + n_part < 13" in lines(changed.program)[0]


def test_loops_along_memory_are_split() -> None:
    text = "def f(float(M,K,L) X) -> (O) { O(m) max=! X(m,k,l+1) where l in 0:20 }"
    changed, _ = split_reductions(specialized(text, (3, 20, 30)), 4)
    assert "X(m, k, 4 * l_step + l_part + 1)" in lines(changed.program)[0]
    turned = "def f(float(L,K,M) X) -> (O) { O(m) max=! X(l,k,m) }"
    changed, _ = split_reductions(specialized(turned, (30, 20, 3)), 4)
    assert "k_part" in lines(changed.program)[0] or "l_part" in lines(changed.program)[0]


def test_loops_that_go_on_where_others_end_are_split_as_one() -> None:
    text = "def f(float(M,J,K,L) X) -> (O) { O(m) max=! X(m,j,k,l) }"
    changed, (split,) = split_reductions(specialized(text, (3, 2, 5, 7)), 4)
    number = "4 * l_step + l_part"
    assert lines(changed.program)[0] == (
        f"O_parts(m, l_part) max=! X(m, ({number}) / 7 / 5, ({number}) / 7 % 5, ({number}) % 7) "
        f"where m in 0:3, l_part in 0:4, l_step in 0:18, {number} < 70"
    )
    assert list(split.values) == ["l", "k", "j"]


def test_a_loop_with_a_condition_is_split_alone() -> None:
    """Of a number of iterations, the condition would be on quotients of it: isl left out half of the iterations."""
    text = "def f(double(P,N,Q,P) C, double(Q) A) -> (B) { B() +=! C(j,l,r,k) * A(r) where k - l in 0:Q }"
    changed, (split,) = split_reductions(specialized(text, (16, 8, 4, 16), (4,)), 2)
    assert list(split.values) == ["k"]
    assert "2 * k_step + k_part - l >= 0" in lines(changed.program)[0]
    comprehension = tc.define(text).single()
    c, a = np.random.default_rng(0).standard_normal((16, 8, 4, 16)), np.ones(4)
    found = comprehension(c, a, target="emulator")
    assert compare(comprehension.oracle(c, a)["B"], np.asarray(found)).ok


def test_what_is_combined_waits_until_it_is_needed() -> None:
    text = "def f(float(M,N) X) -> (a, b, c) { a(m) +=! X(m,n)  b(m) +=! X(m,n) * X(m,n)  c(m) = b(m) }"
    changed, _ = split_reductions(specialized(text, (3, 40)), 4)
    assert [statement.name for statement in changed.program.statements] == ["S0", "S1", "S0_total", "S1_total", "S2"]


def test_what_is_combined_comes_before_what_is_not_split() -> None:
    text = "def f(float(M,N) X, float(M) y) -> (a, b, c) { a(m) +=! X(m,n)  b(m) = y(m)  c(m) +=! X(m,n) * X(m,n) }"
    changed, _ = split_reductions(specialized(text, (3, 40), (3,)), 4)
    assert [statement.name for statement in changed.program.statements] == ["S0", "S0_total", "S1", "S2", "S2_total"]


@one_in(3)
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (SUMS, ((7, 37),)),
        ("def f(int32(N) X) -> (p, a, b) { p() *=! X(i)  a() min=! X(i)  b() max=! X(i) }", ((37,),)),
        ("def f(float16(M,N) X) -> (O) { O(m) +=! X(m,n) }", ((3, 29),)),
        ("def f(bfloat16(M,N) X) -> (O) { O(m) max=! X(m,n) }", ((3, 29),)),
        ("def f(float(M,N) X) -> (O) { O(m) +=! X(m,n) where n in 5:31, m + n < 34 }", ((9, 40),)),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((5, 33), (33, 6))),
        ("def f(float(N) x, int32(K) I) -> (O) { O() +=! x(I(k)) }", ((10,), (23,))),
        ("def f(float(N) x) -> (s) { s() += x(i) }", ((23,),)),
        ("def f(bool(M,N) X) -> (O) { O(m) max=! X(m,n) }", ((4, 25),)),
        ("def f(float(M,J,K) X) -> (O) { O(m) +=! X(m,j,k) }", ((4, 7, 9),)),
        ("def f(float(M,J,K) X) -> (O) { O(m) max=! X(m,j,k) where j in 2:7 }", ((4, 7, 9),)),
        ("def f(float(M,J,K) X) -> (a, b) { a(m) +=! X(m,j,k)  b(m) +=! X(m,j,k) * a(m) }", ((4, 7, 9),)),
        ("def f(float(M,J,K) X) -> (O) { O(m) +=! X(m,j,k) where j + k < 11 }", ((4, 7, 9),)),
    ],
)
@pytest.mark.parametrize("split", every(2, [(8, 2), (4,)]), ids=str)
def test_values_are_those_of_the_definition(
    text: str, shapes: tuple[tuple[int, ...], ...], split: tuple[int, ...]
) -> None:
    comprehension = tc.define(text).single()
    rng = np.random.default_rng(1)
    arrays = []
    for name, shape in zip(comprehension.program.arguments, shapes, strict=True):
        type = comprehension.program.tensor(name).type
        values = rng.standard_normal(shape) if type.is_floating else rng.integers(0, 3, shape)
        arrays.append(np.asarray(values).astype(dtype_of(type)))
    out = {"s": np.full((), 3, np.float32)} if "s() +=" in text else None
    expected = comprehension.oracle(*arrays, out=out)
    options = tc.GpuOptions(split_k_threads=split)
    found = comprehension(*arrays, out=out, target="emulator", options=options)
    results = found if isinstance(found, tuple) else (found,)
    for name, values in zip(comprehension.program.results, results, strict=True):
        assert compare(expected[name], np.asarray(values)).ok, name


def dtype_of(type: tc.ScalarType) -> str:
    import ml_dtypes

    assert ml_dtypes.bfloat16  # which NumPy knows by name from then on
    return type.value


def changed_statement(number: int, change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    def mutate(program: Program) -> Program:
        statements = list(program.statements)
        statements[number] = change(statements[number])
        return replace(program, statements=tuple(statements))

    return mutate


def shifted(expression: Read) -> Read:
    last = Binary(BinaryOperator.ADD, expression.subscripts[-1], Literal(1, INDEX_TYPE), INDEX_TYPE)
    return replace(expression, subscripts=(*expression.subscripts[:-1], last))


def shorter(statement: Statement) -> Statement:
    """Without the last iteration of its last loop."""
    *others, last = statement.iterators
    assert isinstance(last.end, Literal)
    return replace(statement, iterators=(*others, replace(last, end=Literal(int(last.end.value) - 1, INDEX_TYPE))))


def of_read(change: Callable[[Read], Read]) -> Callable[[Statement], Statement]:
    def changed(statement: Statement) -> Statement:
        assert isinstance(statement.value, Read)
        return replace(statement, value=change(statement.value))

    return changed


MUTANTS: dict[str, Callable[[Program], Program]] = {
    "a partial result too few is combined": changed_statement(1, shorter),
    "partial results are not begun": changed_statement(0, lambda s: replace(s, initialize=False)),
    "the result is not begun": changed_statement(1, lambda s: replace(s, initialize=False)),
    "another element is read": changed_statement(0, of_read(shifted)),
    "another partial result is combined": changed_statement(1, of_read(shifted)),
    "no end": changed_statement(0, lambda s: replace(s, conditions=())),
    "an end too early": changed_statement(0, shorter),
    "another reduction": changed_statement(1, lambda s: replace(s, reduction=Reduction.MAXIMUM)),
    "another reduction of parts": changed_statement(0, lambda s: replace(s, reduction=Reduction.MAXIMUM)),
    "another tensor": changed_statement(1, lambda s: replace(s, target="X")),
    "one statement is lost": lambda program: replace(program, statements=program.statements[:1]),
    "a statement runs again": lambda program: replace(program, statements=program.statements + program.statements[1:]),
    "an argument is lost": lambda program: replace(program, tensors=program.tensors[1:]),
}  # fmt: skip


def wrong(mutate: Callable[[Program], Program]) -> object:
    original = specialized(SUMS, (5, 13))
    changed, splits = split_reductions(original, 4)
    with isl_context() as context:
        return find_wrong_split(original.program, mutate(changed.program), splits, context)


@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS)
def test_mutants_are_refused(mutate: Callable[[Program], Program]) -> None:
    assert wrong(mutate) is not None


def test_the_original_is_accepted() -> None:
    assert wrong(lambda program: program) is None


def test_what_is_combined_too_late_is_refused() -> None:
    original = specialized("def f(float(M,N) X) -> (a, b) { a(m) +=! X(m,n)  b(m) = a(m) }", (5, 13))
    changed, splits = split_reductions(original, 4)
    parts, total, reader = changed.program.statements
    late = replace(changed.program, statements=(parts, reader, total))
    with isl_context() as context:
        assert find_wrong_split(original.program, changed.program, splits, context) is None
        found = find_wrong_split(original.program, late, splits, context)
    assert str(found) == "a statement is not what the program says: S0_total comes too late"


def test_partial_results_of_another_element_are_refused() -> None:
    """The instances are all there, one for one, but go elsewhere."""
    original = specialized(SUMS, (5, 12))
    changed, (split,) = split_reductions(original, 4)
    turned = Binary(BinaryOperator.SUBTRACT, Literal(4, INDEX_TYPE), IteratorReference("m"), INDEX_TYPE)
    parts = changed.program.statements[0]
    value = in_terms_of(parts.value, {"m": turned})
    wrong_program = replace(changed.program, statements=(replace(parts, value=value), *changed.program.statements[1:]))
    lie = replace(split, values={**split.values, "m": turned})
    with isl_context() as context:
        assert find_wrong_split(original.program, wrong_program, (lie,), context) is not None


def test_joined_loops_that_leave_out_or_repeat_something_are_refused() -> None:
    original = specialized("def f(float(M,J,K) X) -> (O) { O(m) +=! X(m,j,k) }", (3, 5, 7))
    changed, (split,) = split_reductions(original, 4)
    with isl_context() as context:
        assert find_wrong_split(original.program, changed.program, (split,), context) is None
        for mutate in (
            changed_statement(0, lambda s: replace(s, conditions=())),
            changed_statement(0, of_read(shifted)),
            changed_statement(0, of_read(lambda r: replace(r, subscripts=(*r.subscripts[:1], *r.subscripts[:0:-1])))),
        ):
            assert find_wrong_split(original.program, mutate(changed.program), (split,), context) is not None


def test_a_wrong_split_is_an_error() -> None:
    original = specialized(SUMS, (5, 13))
    changed, splits = split_reductions(original, 4)
    lie = [replace(split, values={"n": Literal(0, INDEX_TYPE)}) for split in splits]
    with (
        isl_context() as context,
        pytest.raises(tc.VerificationError, match=r"^the split of reductions"),
    ):
        prove_split(original.program, changed.program, lie, context)


TOO_SHORT = "but no reduction of sums has a loop that always has more iterations than that"


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((64,), f"split_k_threads asks for 64 partial results, {TOO_SHORT}"),
        ((2, 4), "split_k_threads must go from many partial results to few, got (2, 4)"),
        ((1,), "split_k_threads must be an integer from 2 to 1048576, got 1"),
    ],
)
def test_what_cannot_be_split_is_refused(split: tuple[int, ...], message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}(; make it smaller, or leave it out)?$"):
        tc.define(SUMS).sums.compile((5, 13), target="emulator", options=tc.GpuOptions(split_k_threads=split))


def test_loops_of_different_lengths_are_not_split() -> None:
    prefixes = tc.define("def f(float(N) x) -> (y) { y(j) +=! x(k) where j in 0:N, k in 0:j+1 }").f
    with pytest.raises(
        tc.OptionsError, match=r"^split_k_threads asks for 2 partial results, but no reduction of f has a loop"
    ):
        prefixes.compile((33,), target="emulator", options=tc.GpuOptions(split_k_threads=(2,)))


def grids_of(
    definition: tc.Comprehension, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None
) -> tuple[GridKernel, ...]:
    return translated(definition, *shapes, target="cuda:sm_90", options=options).source.grids


def test_blocks_share_few_long_reductions() -> None:
    total = tc.define("def total(float(N) x) -> (s) { s() +=! x(i) }").total
    grids = grids_of(total, (1 << 22,))
    # Each block has a run of memory; what they have found, one warp adds up.
    assert [(grid.grid[0], grid.block[0]) for grid in grids] == [(198, 256), (1, 32)]
    rows = grids_of(tc.define(SUMS).sums, (3, 1 << 20))
    assert [(grid.grid[:2], grid.block[0]) for grid in rows] == [((66, 3), 256), ((3, 1), 32)]
    alone = grids_of(total, (1 << 22,), options=tc.GpuOptions(split_k_blocks=1))
    assert len(alone) < 3
    assert max(grid.grid[0] for grid in alone) < 8


def test_blocks_share_the_steps_of_a_product() -> None:
    product = tc.define("def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }").tmm
    first, second = grids_of(product, (128, 2048), (128, 2048), options=tc.GpuOptions(split_k_blocks=8))
    assert first.grid[2] == 8
    assert second.grid[2] == 1
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((37, 300)).astype(np.float32), rng.standard_normal((29, 300)).astype(np.float32)]
    found = product(*arrays, target="emulator", options=tc.GpuOptions(split_k_blocks=3))
    assert compare(product.oracle(*arrays)["C"], np.asarray(found)).ok


@pytest.mark.parametrize(("rows", "kernels"), [(300, 2), (255, 1)])
def test_sums_of_columns_are_shared_by_blocks(rows: int, kernels: int) -> None:
    """Both kernels read rows side by side: the number of a partial result is the outermost of its subscripts."""
    columns = tc.define("def columns(float(M,N) X, float(M) w) -> (y) { y(n) +=! X(m,n) * w(m) }").columns
    source = translated(columns, (rows, 40), (rows,), target="cuda:sm_90").source
    assert len(source.grids) == kernels
    if kernels == 2:
        assert re.search(r"t_y_parts\[40 \* c0 \+", source.text)
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((rows, 40)).astype(np.float32), rng.standard_normal(rows).astype(np.float32)]
    found = columns(*arrays, target="emulator")
    assert compare(columns.oracle(*arrays)["y"], np.asarray(found)).ok


@one_in(3)
@pytest.mark.parametrize(
    ("shapes", "blocks"),
    [
        (((128, 2000), (2000, 128)), 25),  # 80 steps each, and 4 tiles of 64 by 64
        (((16, 600), (600, 24)), 9),
        (((16, 500), (500, 24)), 1),
        (((256, 2000), (2000, 128)), 25),
        (((1024, 2000), (2000, 512)), 1),
    ],
)
def test_long_products_of_few_results_are_shared_by_blocks(shapes: tuple[tuple[int, int], ...], blocks: int) -> None:
    product = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    grids = grids_of(product, *shapes)
    assert len(grids) == (2 if blocks > 1 else 1)
    assert grids[0].grid[2] == blocks


def test_what_adds_up_without_a_loop_is_left_alone() -> None:
    outer = tc.define(
        "def outer(float(M,K) A) -> (C) { C(m,n,k) = 0.0 where n in 0:M  C(m,n,k) += A(m,k) * A(n,k) }"
    ).outer
    kernel = outer.compile((9, 5), target="cuda:sm_90")
    assert len(kernel.resources.grids) == 1
    a = np.random.default_rng(4).standard_normal((9, 5)).astype(np.float32)
    assert compare(outer.oracle(a)["C"], np.asarray(outer(a, target="emulator"))).ok


def test_long_products_of_few_results_are_right() -> None:
    product = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((19, 613)).astype(np.float32), rng.standard_normal((613, 21)).astype(np.float32)]
    assert compare(product.oracle(*arrays)["C"], np.asarray(product(*arrays, target="emulator"))).ok


@pytest.mark.parametrize(
    ("across", "split"), every_row(3, [(2, None), (16, None), (3, ()), (16, (32,)), (2, (32,)), (3, (8, 2))]), ids=str
)
def test_values_across_blocks_are_those_of_the_definition(across: int, split: tuple[int, ...] | None) -> None:
    text = "def f(float(M,N) X) -> (a, b) { a(m) +=! X(m,n)  b() max=! X(m,n) }"
    comprehension = tc.define(text).single()
    values = np.random.default_rng(across).standard_normal((3, 1021)).astype(np.float32)
    options = tc.GpuOptions(split_k_threads=split, split_k_blocks=across)
    found = comprehension(values, target="emulator", options=options)
    assert isinstance(found, tuple)
    for (name, expected), result in zip(comprehension.oracle(values).items(), found, strict=True):
        assert compare(expected, np.asarray(result)).ok, name


def test_too_many_blocks_are_refused() -> None:
    message = f"split_k_blocks asks for 64 partial results, {TOO_SHORT}"
    with pytest.raises(tc.OptionsError, match=f"^{message}; make it smaller, or leave it out$"):
        tc.define(SUMS).sums.compile((5, 13), target="emulator", options=tc.GpuOptions(split_k_blocks=64))


def test_threads_hold_partial_results_and_combine_them() -> None:
    kernel = tc.define(SUMS).sums.compile((5, 100), target="emulator", options=tc.GpuOptions(split_k_threads=(16,)))
    assert kernel.compilation is not None
    assert len(kernel.compilation.barriers) == 1
    assert re.search(r"shared\d+_O_parts", kernel.source)


def test_sums_without_results_have_nothing_to_share() -> None:
    sums = tc.define("def sums(float(N,H,N) X) -> (C) { C(j) +=! X(i,j,k) }").sums
    for length in (8, 4096):
        found = sums(np.broadcast_to(np.float32(1), (length, 0, length)), target="emulator")
        assert np.asarray(found).shape == (0,)
