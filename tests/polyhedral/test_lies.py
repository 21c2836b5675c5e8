"""Passes that lie in ways that no loop shows: the proof refuses their statements, buffers and orders."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from dataclasses import replace

import islpy as isl
import pytest

from tc.base.errors import VerificationError
from tc.base.types import ScalarType
from tc.language.isl.session import isl_context
from tc.language.program.program import Expression, IteratorReference, Read, rebuild
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.box import bounding_box, own_space
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import Allocation, Loop, LoopKind, LoopTree
from tc.polyhedral.ir.scop import PromotedAccess, Scop, ScopStatement, build_scop
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.proof.verify import find_counterexample
from tc.polyhedral.proof.verify_statements import prove_statements
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, Promoted, promote_accesses
from tc.targets.options import CpuOptions, ScheduleOptions
from tests.polyhedral.lies import on_domain, without_copy
from tests.polyhedral.mutants import Edit, edits
from tests.polyhedral.support import MACHINE, MATMUL, Candidate, candidate, specialized

# S0 writes X; S1 reads it, S2 updates it, S3 doubles it in its place, S4 reads it again.
PROGRAM = """
def updated(float(N) A) -> (X, Y, Z) {
  X(i) = A(i)
  Y(i) = X(i) + A(i)
  X(i) += A(i)
  X(i) = X(i) + X(i)
  Z(i) = X(i)
}
"""


def program(context: isl.Context) -> Scop:
    return build_scop(specialized(PROGRAM, ((5,),)), context)


def promoted(scop: Scop, *accesses: Access, stored: bool) -> Promoted:
    """One buffer for all of X while these accesses run."""
    box = bounding_box([scop.statements[0].writes[0]], ())
    assert box is not None
    return promote_accesses(scop, Footprint(accesses, (), box), Placement("held", (0,)), stored=stored)


def in_order(found: Promoted, names: Items[str] = ()) -> ScheduleTree:
    """One statement after another, in the order of the scop or in another one; those that use the buffer below it."""
    statements = [found.scop.statement(name) for name in names] or list(found.scop.statements)
    using = [position for position, statement in enumerate(statements) if statement.promoted]
    held = slice(using[0], using[-1] + 1)
    copies = {copy.name for copy in (found.loads, found.stores) if copy is not None}
    inside = domain_of(s for s in statements[held] if s.name not in copies)
    around = Filter(inside.universe(), Extension(found.buffer, found.instances, one_by_one(statements[held])))
    before, after = one_by_one(statements[: held.start]), one_by_one(statements[held.stop :])
    domain = domain_of(s for s in statements if s.name not in copies)
    return ScheduleTree(domain, Sequence((*before.filters, around, *after.filters)))


def domain_of(statements: Iterable[ScopStatement]) -> isl.UnionSet:
    return functools.reduce(isl.UnionSet.union, (isl.UnionSet.from_set(s.domain) for s in statements))


def one_by_one(statements: Iterable[ScopStatement]) -> Sequence:
    return Sequence(tuple(Filter(own_space(s.domain), loops(s)) for s in statements))


def loops(statement: ScopStatement) -> Node:
    local = isl.LocalSpace.from_space(statement.domain.get_space())
    index = isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, 0))
    return Band((Member(isl.UnionPwAff.from_pw_aff(index), coincident=True),), permutable=True, child=Leaf())


def violation(scop: Scop, tree: ScheduleTree) -> Violation | None:
    found = find_counterexample(scop, tree_execution(tree, scop.context))
    return None if found is None else found.violation


def test_what_honest_passes_promote_is_accepted() -> None:
    with isl_context() as context:
        scop = program(context)
        for accesses, stored in (
            ((Access("S1", 0),), False),
            ((Access("S2", None), Access("S3", 0), Access("S3", 1), Access("S3", None), Access("S4", 0)), True),
            ((Access("S3", 0), Access("S3", 1), Access("S3", None)), True),
        ):
            found = promoted(scop, *accesses, stored=stored)
            assert violation(found.scop, in_order(found)) is None
            prove_statements(scop, found.scop)


def updating(context: isl.Context) -> Promoted:
    return promoted(program(context), Access("S3", 0), Access("S3", 1), Access("S3", None), stored=True)


def test_an_update_in_place_of_what_was_not_loaded_is_refused() -> None:
    with isl_context() as context:
        found = updating(context)
        assert found.loads is not None
        lie = without_copy((found.scop, in_order(found)), found.loads.name)
        assert violation(*lie) is Violation.NOT_LOADED


def test_a_store_before_the_last_write_is_refused() -> None:
    with isl_context() as context:
        accesses = Access("S2", None), Access("S3", 0), Access("S3", 1), Access("S3", None)
        found = promoted(program(context), *accesses, stored=True)
        assert found.stores is not None
        names = [statement.name for statement in found.scop.statements]
        early = [name for name in names if name != found.stores.name]
        early.insert(early.index("S3"), found.stores.name)
        scop = replace(found.scop, statements=tuple(found.scop.statement(name) for name in early))
        assert violation(scop, in_order(found, early)) is Violation.NOT_STORED


def test_a_second_place_for_an_element_is_refused() -> None:
    with isl_context() as context:
        accesses = Access("S1", 0), Access("S2", None), Access("S4", 0)
        found = promoted(program(context), *accesses, stored=True)
        assert found.loads is not None
        (promotion,) = found.scop.promotions
        twice = isl.Map.read_from_str(context, "{ held[a] -> X[a] : 0 <= a < 5; held[a] -> X[a - 5] : 5 <= a < 10 }")
        wide = replace(promotion.buffer, layout=Layout(ScalarType.FLOAT32, (10,), (1,)))
        scop = replace(found.scop, promotions=(replace(promotion, buffer=wide, elements=twice),))
        domain = isl.Set.read_from_str(context, f"{{ {found.loads.name}[a] : 0 <= a < 10 }}")
        scop, tree = on_domain((scop, in_order(found)), found.loads.name, domain)
        beside = isl.Map.read_from_str(context, "{ held[a] -> held[a + 5] }")
        (access,) = scop.statement("S4").promoted
        scop = with_access(scop, "S4", replace(access, location=access.location.apply_range(beside)))
        assert violation(scop, tree) is Violation.WRONG_ELEMENT


def with_access(scop: Scop, name: str, *accesses: PromotedAccess) -> Scop:
    """The scop with other promoted accesses of one statement."""
    return with_statement(scop, replace(scop.statement(name), promoted=accesses))


def with_statement(scop: Scop, changed: ScopStatement) -> Scop:
    return replace(scop, statements=tuple(changed if s.name == changed.name else s for s in scop.statements))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Layout(ScalarType.FLOAT32, (5,), (0,)), Violation.OVERLAPPING),
        (Layout(ScalarType.FLOAT64, (5,), (1,)), Violation.WRONG_TYPE),
        (Layout(ScalarType.FLOAT32, (4,), (1,)), Violation.OUT_OF_BOUNDS),
    ],
    ids=lambda value: value.name if isinstance(value, Violation) else "",
)
def test_a_buffer_that_cannot_hold_its_elements_is_refused(layout: Layout, expected: Violation) -> None:
    with isl_context() as context:
        found = updating(context)
        (promotion,) = found.scop.promotions
        spoiled = replace(promotion, buffer=replace(promotion.buffer, layout=layout))
        assert violation(replace(found.scop, promotions=(spoiled,)), in_order(found)) is expected


def test_rows_of_a_buffer_that_overlap_are_refused() -> None:
    with isl_context() as context:
        found = tiled(context)
        (promotion,) = found.scop.promotions
        layout = promotion.buffer.layout
        strides = tuple(max(1, stride - 1) for stride in layout.strides)
        small = replace(promotion.buffer, layout=Layout(layout.type, layout.shape, strides))
        scop = replace(found.scop, promotions=(replace(promotion, buffer=small),))
        assert violation(scop, found.tree) is Violation.OVERLAPPING


def test_an_allocation_of_another_size_is_refused() -> None:
    with isl_context() as context:
        found = tiled(context)

        def smaller(node: LoopTree) -> Iterator[Edit]:
            if isinstance(node, Allocation):
                layout = node.buffer.layout
                short = Layout(layout.type, (layout.shape[0] - 1, *layout.shape[1:]), layout.strides)
                yield Edit(replace(node, buffer=replace(node.buffer, layout=short)), node)

        (edit,) = edits(found.loops, smaller)
        failure = find_counterexample(found.scop, found.execution(edit.mutant))
        assert failure is not None
        assert failure.violation is Violation.WRONG_SCOPE


def tiled(context: isl.Context) -> Candidate:
    """A product whose reduction is cut, so that every piece loads and stores its tile of the result."""
    options = CpuOptions(schedule=ScheduleOptions(tile=(8, 8, 8)), register_tile=(4, 8), packed_operands=0)
    return candidate(specialized(MATMUL, ((16, 24), (24, 16))), options, MACHINE, context)


def test_lanes_that_load_and_store_one_tile_are_refused() -> None:
    with isl_context() as context:
        found = tiled(context)
        assert find_counterexample(found.scop, found.execution(found.loops)) is None

        def in_lanes(node: LoopTree) -> Iterator[Edit]:
            if isinstance(node, Loop) and node.kind is LoopKind.SEQUENTIAL:
                yield Edit(replace(node, kind=LoopKind.REDUCTION), node)

        failures = [find_counterexample(found.scop, found.execution(e.mutant)) for e in edits(found.loops, in_lanes)]
        (failure,) = (f for f in failures if f is not None)
        assert failure.violation is Violation.CONCURRENT
        assert "store" in failure.witness


# --- statements ----------------------------------------------------------------------------------------------


def refused(scop: Scop, changed: Scop) -> str:
    """How statements are refused that another scop makes of those of the program."""
    with pytest.raises(VerificationError, match="a statement is not what the program says: ") as caught:
        prove_statements(scop, changed)
    return str(caught.value).rpartition(": ")[2]


def test_statements_that_are_dropped_repeated_or_moved_are_refused() -> None:
    with isl_context() as context:
        scop = program(context)
        first, *others = scop.statements
        for statements in ((*others,), (first, *others, first), (*others, first)):
            assert "instead of S0, S1, S2, S3, S4" in refused(scop, replace(scop, statements=tuple(statements)))
        assert refused(scop, replace(scop, buffers=scop.buffers[1:])) == "other tensors"


def test_statements_that_do_something_else_are_refused() -> None:
    with isl_context() as context:
        scop = program(context)
        last = scop.statement("S4")
        fewer = last.domain.upper_bound_val(isl.dim_type.set, 0, isl.Val.int_from_si(context, 3))
        for changed in (
            replace(last, domain=fewer),
            replace(last, reads=()),
            replace(last, writes=last.reads),
            replace(last, accumulates=True),
            replace(last, body=replace(last.body, target="Y")),
            replace(last, body=replace(last.body, value=scop.statement("S0").body.value)),
        ):
            assert refused(scop, with_statement(scop, changed)) == "S4"


def backwards(access: PromotedAccess) -> PromotedAccess:
    """The access to the elements of X from its end."""
    turn = isl.Map.read_from_str(access.element.get_ctx(), "{ X[a] -> X[4 - a] }")
    place = isl.Map.read_from_str(access.element.get_ctx(), "{ held[a] -> held[4 - a] }")
    return replace(access, element=access.element.apply_range(turn), location=access.location.apply_range(place))


def test_accesses_that_are_not_those_of_the_statement_are_refused() -> None:
    with isl_context() as context:
        scop = program(context)
        found = promoted(scop, Access("S4", 0), stored=False).scop
        reader = found.statement("S4")
        (access,) = reader.promoted
        for lie in (
            (backwards(access),),
            (replace(access, writes=True),),
            (replace(access, reads=False),),
            (access, access),
            (),
        ):
            assert refused(scop, with_access(found, "S4", *lie)) == "S4"

        def shifted(expression: Expression) -> Expression:
            if isinstance(expression, Read):
                return replace(expression, subscripts=(IteratorReference("i"),))
            return rebuild(expression, shifted)

        body = replace(reader.body, value=shifted(reader.body.value))
        assert refused(scop, with_statement(found, replace(reader, body=body))) == "S4"


GATHER = """
def gather(float(N) X, int32(N) I) -> (Y, O) {
  Y(i) = X(i)
  O(i) = Y(I(i))
}
"""


def test_buffers_do_not_take_reads_that_are_checked_when_they_run() -> None:
    with isl_context() as context:
        scop = build_scop(specialized(GATHER, ((1,), (1,))), context)
        assert scop.statement("S1").reads[0].is_single_valued()
        assert refused(scop, promoted(scop, Access("S1", 0), stored=False).scop) == "S1"


def test_copies_that_copy_something_else_are_refused() -> None:
    with isl_context() as context:
        scop = program(context)
        found = promoted(scop, Access("S2", None), stored=True)
        assert found.loads is not None
        assert found.stores is not None
        for copy in (found.loads, found.stores):
            (access,) = copy.promoted
            other = found.stores if copy is found.loads else found.loads
            for changed in (
                replace(copy, body=other.body),
                replace(copy, body=replace(copy.body, value=scop.statement("S1").body.value)),
                replace(copy, promoted=(backwards(access),)),
                replace(copy, promoted=(replace(access, reads=True, writes=True),)),
                replace(copy, promoted=(access, access)),
                replace(copy, writes=scop.statement("S0").writes),
            ):
                assert refused(scop, with_statement(found.scop, changed)) == copy.name
