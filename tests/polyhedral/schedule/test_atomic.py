"""Atomic scatters: which ones are, and what the proofs refuse of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.language.program.program import Program, Read, Reduction, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.analysis.box import own_space
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, build_scop
from tc.polyhedral.ir.splits import Share
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Member, ScheduleTree, Sequence
from tc.polyhedral.proof.verify import find_counterexample
from tc.polyhedral.proof.verify_shares import find_wrong_share
from tc.polyhedral.schedule.counted import with_counts
from tc.polyhedral.schedule.scatter import share_scatters
from tests.opencl import require
from tests.polyhedral.schedule.sharing import refused

ATOMIC = Share("S0", atomic=True)


def specialized(type: str, statement: str) -> Specialization:
    text = f"def f(int32(B) I, {type}(B) v, {type}(V) z) -> ({type}(V) y) {{ {statement} }}"
    return tc.define(text).single().specialize((20,), (20,), (11,))


COUNTS = specialized("int32", "y(I(b)) +=! v(b)")


def scatter(change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    return lambda program: replace(program, statements=tuple(map(change, program.statements)))


WRONG: dict[str, Callable[[Program], Program]] = {
    "not marked": scatter(lambda own: replace(own, atomic=False)),
    "another operator": scatter(lambda own: replace(own, reduction=Reduction.MAXIMUM)),
    "not begun": scatter(lambda own: replace(own, initialize=False)),
    "other elements": scatter(lambda own: replace(own, subscripts=(own.value,))),
    "twice": lambda program: replace(program, statements=program.statements * 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_statements_are_refused(name: str) -> None:
    assert refused(COUNTS, ATOMIC, WRONG[name])


def reads_its_target(original: Specialization) -> Specialization:
    (statement,) = original.program.statements
    value = Read("y", statement.subscripts, statement.value.type)
    return replace(original, program=replace(original.program, statements=(replace(statement, value=value),)))


@pytest.mark.parametrize(
    "original",
    [
        specialized("float", "y(I(b)) +=! v(b)"),
        specialized("float16", "y(I(b)) *=! v(b)"),
        specialized("double", "y(I(b)) +=! v(b)"),
        specialized("bool", "y(I(b)) max=! v(b)"),
        specialized("int32", "y(e) = z(e)  y(I(b)) = v(b) where distinct I"),
        reads_its_target(COUNTS),
    ],
    ids=["float", "float16", "double", "bool", "not a reduction", "terms of its target"],
)
def test_what_depends_on_the_order_is_refused(original: Specialization) -> None:
    statement = original.program.statements[-1]
    share = replace(ATOMIC, statement=statement.name)
    with isl_context() as context:
        changed, shared = share_scatters(original, (share,))
        found = find_wrong_share(original, changed, shared, context)
    assert found == Counterexample(Violation.CHANGED, statement.name)


@pytest.mark.parametrize("type", ["int32", "uint64", "float", "float16"])
def test_extremes_of_all_numbers_may_be_atomic(type: str) -> None:
    original = specialized(type, "y(I(b)) min=! v(b)")
    with isl_context() as context:
        assert find_wrong_share(original, *share_scatters(original, (ATOMIC,)), context) is None


PARTS = replace(ATOMIC, parts=4)


@pytest.mark.parametrize("type", ["int32", "uint64"])
def test_parts_may_be_atomic_too(type: str) -> None:
    original = specialized(type, "y(I(b)) +=! v(b)")
    with isl_context() as context:
        changed, shared = share_scatters(original, (PARTS,))
        assert [statement.atomic for statement in changed.program.statements] == [True, False]
        assert find_wrong_share(original, changed, shared, context) is None


def test_parts_that_depend_on_the_order_are_refused() -> None:
    original = specialized("float", "y(I(b)) +=! v(b)")
    with isl_context() as context:
        changed, shared = share_scatters(original, (PARTS,))
        assert find_wrong_share(original, changed, shared, context) == Counterexample(Violation.CHANGED, "S0")
        assert find_wrong_share(original, changed, shared, context, deterministic=False) is None


def marked(atomic: bool) -> Callable[[Program], Program]:
    """The partial results, as they are not to be marked."""
    return scatter(lambda own: replace(own, atomic=atomic and own.initialize and own.target != "y"))


@pytest.mark.parametrize("share", [PARTS, replace(PARTS, atomic=False)], ids=["atomic", "in order"])
def test_parts_are_marked_as_they_are_said_to_be(share: Share) -> None:
    assert refused(COUNTS, share, marked(not share.atomic))


def test_where_elements_are_few_parts_are_updated() -> None:
    f = tc.define("def f(uint8(N) x) -> (h) { h(x(i)) +=! 1 where x(i) in 0:256 }").single()
    numbers = np.random.default_rng(0).integers(0, 256, 100001).astype(np.uint8)
    for terms, expected in ((65535, ""), (65536, " of 32 parts with some of the terms each"), (100001, " of 32 parts")):
        kernel = f.compile((terms,), target="emulator")
        text = next(stage.text for stage in kernel.stages if stage.name == "scatters")
        assert text.startswith(f"S0: atomic updates, in any order,{expected}" if expected else "S0: atomic updates")
        assert ("parts" in text) == bool(expected)
        found = f(numbers[:terms], target="emulator")
        np.testing.assert_array_equal(found, np.bincount(numbers[:terms], minlength=256))


def side_by_side(scop: Scop) -> ScheduleTree:
    """All instances of the statements behind the initialization at once, one thread each, in one kernel."""
    first, *others = (own_space(statement.domain) for statement in scop.statements)
    functions = "; ".join(f"{s.name}[b] -> [(b)]" for s in scop.statements[1:])
    member = Member(
        isl.UnionPwAff.read_from_str(scop.context, f"{{ {functions} }}"), coincident=True, kind=LoopKind.BLOCK
    )
    rest = others[0]
    for other in others[1:]:
        rest = rest.union(other)
    inner = Sequence(tuple(Filter(other, Leaf()) for other in others)) if len(others) > 1 else Leaf()
    root = Sequence((Filter(first, Leaf()), Filter(rest, Band((member,), True, inner))))
    return ScheduleTree(scop.domain, root)


def failure(statement: str, *, marked: bool) -> Counterexample | None:
    original = specialized("int32", statement)
    with isl_context() as context:
        share = replace(ATOMIC, statement=next(s.name for s in original.program.statements if s.reduction))
        changed, _ = share_scatters(with_counts(original), (share,))
        scop = build_scop(changed, context)
        if not marked:
            plain = (replace(s, body=replace(s.body, atomic=False)) for s in scop.statements)
            scop = replace(scop, statements=tuple(plain))
        return find_counterexample(scop, tree_execution(side_by_side(scop), context))


def test_plain_updates_at_the_same_time_are_refused() -> None:
    assert failure("y(I(b)) +=! v(b)", marked=True) is None
    found = failure("y(I(b)) +=! v(b)", marked=False)
    assert found is not None
    assert found.violation is Violation.CONCURRENT


def test_others_do_not_look_at_the_elements_meanwhile() -> None:
    """Not even another atomic statement."""
    for other in ("s(b) = y(I(b)) where b in 0:20", "y(I(b)) += v(b)"):
        found = failure(f"y(I(b)) +=! v(b)  {other}", marked=True)
        assert found is not None
        assert found.violation is Violation.CONCURRENT


def kernel(
    statement: str, type: str = "int32", target: str = "emulator", schedule: tc.ScheduleOptions | None = None
) -> str:
    """What was done to the scatters of a kernel."""
    text = f"def f(int32(B) I, {type}(B) v, {type}(V) z) -> (y) {{ {statement} }}"
    options = tc.GpuOptions(schedule or tc.ScheduleOptions())
    stages = tc.define(text).single().compile((20,), (20,), (11,), target=target, options=options).stages
    return next((stage.text for stage in stages if stage.name == "scatters"), "")


@pytest.mark.parametrize(
    ("type", "operator", "expected"),
    [
        ("int32", "+=!", True),
        ("uint32", "*=!", True),
        ("int64", "max=!", True),
        ("float", "min=!", True),
        ("float16", "max=!", True),
        ("float", "+=!", False),
        ("double", "*=!", False),
        ("int16", "+=!", False),
    ],
)
def test_what_gpus_update_atomically(type: str, operator: str, expected: bool) -> None:
    found = kernel(f"y(I(b)) {operator} v(b) where I(b) in 0:V", type)
    assert found == ("S0: atomic updates, in any order" if expected else "")


def test_what_was_asked_for_comes_before_atomic_updates() -> None:
    statement = "y(I(b)) +=! v(b) where I(b) in 0:V"
    assert "3 owners" in kernel(statement, schedule=tc.ScheduleOptions(scatter_owners=3))
    assert "4 parts" in kernel(statement, schedule=tc.ScheduleOptions(scatter_parts=4))
    assert kernel(statement, schedule=tc.ScheduleOptions(scatter_owners=1)) == ""


def test_opencl_updates_four_bytes() -> None:
    require("opencl")
    assert kernel("y(I(b)) +=! v(b) where I(b) in 0:V", target="opencl")
    assert not kernel("y(I(b)) +=! v(b) where I(b) in 0:V", "int64", target="opencl")


def test_no_thread_waits_between_updates() -> None:
    """Only the neutral elements must be there before."""
    body = "y(I(b)) min=! v(b) where I(b) in 0:9  z(I(b)) max=! v(b) where I(b) in 0:9"
    source = (
        tc.define(f"def f(int32(N) I, float(N) v) -> (y, z) {{ {body} }}")
        .single()
        .compile((300,), (300,), target="cuda:sm_90")
        .source
    )
    assert source.count("__syncthreads();") == 1
