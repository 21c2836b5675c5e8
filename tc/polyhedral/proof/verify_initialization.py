"""The proof that the scop initializes what the program reduces: every element once, before all its updates.

It goes through the statements of the program, and takes those of the scop that stand for each, in their order:

1. ``op=!`` is an initialization and, right behind it, an update.  The initialization writes the neutral element, to
   exactly the elements that the written iterators reach within their ranges and conditions, and no two of its instances
   write the same one.  All elements of the update are among them.  In blocks, that is so in each of their steps.
2. What accumulates elsewhere than in its target, as halves do in float32, does so in a temporary of its own.  That is
   initialized like this, or loaded with what the elements hold; right behind the update, each of them is stored once.

That all instances run once and in this order is ``tc.polyhedral.proof.verify``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.types import ScalarType
from tc.language.isl.affine import Frame, access_relation, frame_of, isl_name, iteration_domain, owned_elements
from tc.language.program.extent import Extent
from tc.language.program.program import Cast, Expression, Literal, Read, Reduction, Statement
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import is_scatter, over_elements
from tc.polyhedral.ir.counterexample import Counterexample, Violation, point_text
from tc.polyhedral.ir.lazy_attribute import LazyAttribute
from tc.polyhedral.ir.scop import Scop, ScopStatement


def prove_initialization(specialization: Specialization, scop: Scop) -> None:
    """VerificationError where ``scop``, before any pass, does not initialize what the program reduces."""
    found = find_wrong_initialization(specialization, scop)
    if found is not None:
        raise VerificationError(f"the initialization of reductions is not proven correct: {found}")


def find_wrong_initialization(specialization: Specialization, scop: Scop) -> Counterexample | None:
    """The first thing that is wrong, or None."""
    program = specialization.program
    storage = dict(specialization.signature.aliases)
    own = {storage.get(tensor.name, tensor.name) for tensor in program.tensors}
    left = list(scop.statements)
    for statement in program.statements:
        target = storage.get(statement.target, statement.target)
        place = next((n for n, found in enumerate(left) if found.name == statement.name), None)
        if place is None:
            return Counterexample(Violation.CHANGED, f"{statement.name} is missing")
        update = left[place]
        aside = update.body.target != target
        count = place + 1 + aside
        if place != (statement.initialize or aside) or len(left) < count:
            return Counterexample(Violation.CHANGED, f"the statements that stand for {statement.name}")
        before, after, left = left[:place], left[place + 1 : count], left[count:]
        group = _Group(scop, statement, target, program.tensor(statement.target).shape, update)
        if aside and (update.body.target in own or not group.is_alone((*before, update, *after))):
            return Counterexample(Violation.CHANGED, f"{update.body.target} is not of {statement.name} alone")
        found = (
            group.wrong_update()
            or next(filter(None, map(group.wrong_initialization, before)), None)
            or next(filter(None, map(group.wrong_store, after)), None)
        )
        if found is not None:
            return found
    return Counterexample(Violation.CHANGED, f"{left[0].name} stands for nothing") if left else None


@dataclass(frozen=True)
class _Group:
    """The statements that stand for one of the program.

    ``target``: what its target is stored in; ``shape``: of the target.
    """

    scop: Scop
    statement: Statement
    target: str
    shape: tuple[Expression, ...]
    update: ScopStatement

    @property
    def types(self) -> Mapping[str, ScalarType]:
        return {buffer.name: buffer.layout.type for buffer in (*self.scop.buffers, *self.scop.temporaries)}

    def is_alone(self, statements: tuple[ScopStatement, ...]) -> bool:
        """Whether only these statements touch what the update accumulates in."""
        name = isl_name(self.update.body.target)
        return all(
            other in statements
            or name not in (a.get_tuple_name(isl.dim_type.out) for a in (*other.reads, *other.writes))
            for other in self.scop.statements
        )

    @property
    def bounds(self) -> tuple[int | Extent, ...]:
        """The extents of the target."""
        buffers = (*self.scop.buffers, *self.scop.temporaries)
        return next(buffer.layout.bounds for buffer in buffers if buffer.name == self.target)

    @LazyAttribute
    def instances(self) -> isl.Set | None:
        """Of the program's statement, also where data can choose no element: owners may have none of an open extent."""
        return iteration_domain(self.statement, frame_of(self.statement, self.scop.context, sizes=self.scop.sizes))

    @LazyAttribute
    def updated(self) -> isl.Map | None:
        """``{ instance -> element }`` of the program's statement."""
        return self.written(self.statement)

    @LazyAttribute
    def reached(self) -> isl.Map | None:
        """The same over its written iterators alone: what it initializes."""
        elements = over_elements(self.statement, self.shape)
        return self.written(replace(elements, owned=None))

    def written(self, statement: Statement) -> isl.Map | None:
        frame = frame_of(statement, self.scop.context, sizes=self.scop.sizes)
        domain = iteration_domain(statement, frame)
        if domain is None:
            return None
        return owned_elements(self.access(statement.subscripts, frame).intersect_domain(domain), statement.owned, frame)

    def in_steps(self, accesses: isl.Map) -> isl.Map:
        """``{ instance -> [steps, element] }``."""
        count = len(self.statement.blocks)
        steps = isl.Map.identity(accesses.get_space().domain().map_from_set()).reset_tuple_id(isl.dim_type.out)
        steps = steps.project_out(isl.dim_type.out, count, steps.dim(isl.dim_type.out) - count)
        return steps.flat_range_product(accesses).reset_tuple_id(isl.dim_type.out)

    def access(self, subscripts: tuple[Expression, ...], frame: Frame) -> isl.Map:
        relation = access_relation(self.update.body.target, subscripts, self.bounds, frame)
        return relation.reset_tuple_id(isl.dim_type.out)

    def wrong_update(self) -> Counterexample | None:
        """Unless it runs for the instances of the program, and writes what they write."""
        wanted, update, reduction = self.updated, self.update, self.statement.reduction
        instances = self.instances
        same = (
            wanted is not None
            and instances is not None
            and update.body.reduction is reduction
            and update.accumulates is (reduction is not None or is_scatter(self.statement))
            and update.blocks == self.statement.blocks
            and update.domain.is_equal(instances)
            and _are_equal(_elements_of(update.writes, update.body.target), wanted)
        )
        return None if same else Counterexample(Violation.CHANGED, update.name)

    def wrong_initialization(self, first: ScopStatement) -> Counterexample | None:
        """Unless it gives every element that the update may write its first value, once."""
        body = first.body
        if body.target != self.update.body.target:
            return Counterexample(Violation.CHANGED, first.name)
        reduction = self.statement.reduction
        if self.statement.initialize and reduction is not None:
            right = is_neutral(body.value, reduction, self.types[body.target]) and not first.reads
        else:
            right = self.copies(first, self.target)
        if not right:
            return Counterexample(Violation.NOT_INITIALIZED, first.name)
        return self.wrong_elements(first)

    def wrong_store(self, last: ScopStatement) -> Counterexample | None:
        """Unless it stores every element that was begun, once."""
        if last.body.target != self.target or not self.copies(last, self.update.body.target):
            return Counterexample(Violation.CHANGED, last.name)
        return self.wrong_elements(last)

    def copies(self, copy: ScopStatement, source: str) -> bool:
        """Whether each instance copies an element from there, whatever the types are."""
        body = copy.body
        value = body.value.operand if isinstance(body.value, Cast) else body.value
        return (
            value == Read(source, body.subscripts, self.types[source])
            and body.value.type is self.types[body.target]
            and _are_equal(_elements_of(copy.reads, source), _elements_of(copy.writes, body.target))
        )

    def wrong_elements(self, once: ScopStatement) -> Counterexample | None:
        """Unless a statement that does not reduce writes every element that the written iterators reach, once."""
        body, reached, updated = once.body, self.reached, self.updated
        frame = Frame(self.scop.context, once.name, body.iterators, sizes=self.scop.sizes)
        accessed = self.access(body.subscripts, frame).intersect_domain(once.domain)
        if (
            reached is None
            or updated is None
            or (body.reduction, once.accumulates, once.promoted) != (None, False, ())
            or once.blocks != self.statement.blocks
            or not _are_equal(_elements_of(once.writes, body.target), accessed)
        ):
            return Counterexample(Violation.CHANGED, once.name)
        accessed, reached, updated = map(self.in_steps, (accessed, reached, updated))
        if not accessed.is_injective():
            twice = accessed.apply_range(accessed.reverse())
            twice = twice.subtract(isl.Map.identity(twice.get_space()))
            return _witness(Violation.WRITTEN_TWICE, twice.domain())
        wanted, given = reached.range().union(updated.range()), accessed.range()
        if wanted.is_equal(given):
            return None
        missing = wanted.subtract(given).set_tuple_name(isl_name(body.target))
        if not missing.is_empty():
            return _witness(Violation.NOT_INITIALIZED, missing)
        return _witness(Violation.FOREIGN, accessed.subtract_range(wanted).domain())


def _elements_of(relations: tuple[isl.Map, ...], tensor: str) -> isl.Map | None:
    """``{ instance -> element }`` of the only one of the relations, which must be to that tensor."""
    if len(relations) != 1 or relations[0].get_tuple_name(isl.dim_type.out) != isl_name(tensor):
        return None
    return relations[0].reset_tuple_id(isl.dim_type.out)


def _are_equal(first: isl.Map | None, second: isl.Map | None) -> bool:
    return first is not None and second is not None and bool(first.is_equal(second))


def _witness(violation: Violation, points: isl.Set) -> Counterexample:
    return Counterexample(violation, point_text(isl.UnionSet.from_set(points)))


def is_neutral(value: Expression, reduction: Reduction, type: ScalarType) -> bool:
    """Whether combining with the value changes nothing."""
    if not isinstance(value, Literal) or value.type is not type:
        return False
    match reduction:
        case Reduction.ADD:
            return value.value == 0
        case Reduction.MULTIPLY:
            return value.value == 1
        case Reduction.MINIMUM:
            return value.value == (math.inf if type.is_floating else type.maximum)
        case Reduction.MAXIMUM:
            return value.value == (-math.inf if type.is_floating else type.minimum)
