"""What the proof asks of every nest of matrix instructions, whoever runs them, and the sums in it.

The sums stay where they are during all steps, each in a place of its own.  Guards in a nest may leave out rows and
columns, for which instructions compute sums, too: these are in places that nothing else touches as long as the array of
the lane lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from functools import reduce
from typing import Final, Generic, TypeVar

import islpy as isl

from tc.base.dots import Products
from tc.base.types import ScalarType
from tc.language.program.program import Reduction
from tc.language.program.terms import matrix_factors
from tc.polyhedral.analysis.functions import function_map
from tc.polyhedral.execution.execution import LocalSubscripts, MatrixPlace
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import (
    Buffer,
    Fragment,
    GroupMma,
    Guard,
    IndexLiteral,
    Instance,
    Loop,
    LoopTree,
    Mma,
    SharedMatrix,
    Sharing,
)
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop, ScopStatement

# Threads of a block along x, and a number that those along y are a multiple of.
QUADS: Final = 4
GROUP: Final = 8
# Types to which factors are rounded: only where the options ask for it.
_ROUNDED: Final = (Products.TF32.value, Products.THREE_TF32.value)
_TYPES: Final = {
    "f16": ScalarType.FLOAT16,
    "bf16": ScalarType.BFLOAT16,
    "s8": ScalarType.INT8,
    "u8": ScalarType.UINT8,
    **dict.fromkeys(_ROUNDED, ScalarType.FLOAT32),
}
_SUMS: Final = {"f32": ScalarType.FLOAT32, "s32": ScalarType.INT32}

_Node = TypeVar("_Node", Mma, GroupMma)


class NestCheck(Generic[_Node]):
    """Of one place.  ``summing``: the iterators of the steps, all of which one sum goes through."""

    def __init__(
        self, scop: Scop, place: MatrixPlace, node: _Node, others: Items[LocalSubscripts], summing: tuple[str, ...]
    ) -> None:
        self.scop: Final = scop
        self.others: Final = others
        self.place: Final = place
        self.node: Final[_Node] = node
        self.summing: Final = summing
        self.points: Final = place.points.reset_tuple_id()
        self.instances: Final = place.instances.reset_tuple_id(isl.dim_type.in_)
        self.statement: Final = scop.statement(str(place.instances.get_tuple_name(isl.dim_type.out)))
        self.names: Final = [f"v{n}" for n in range(len(place.iterators))]
        self.counts: Final = dict(_counts(place.node.nest))

    # --- the statement and the loops

    def is_product(self) -> bool:
        """Whether the statement adds up products of the factors, of the types of the instruction."""
        body, shape = self.statement.body, self.node.shape
        factors = matrix_factors(body.value, self.scop.products)
        if factors is None or body.reduction is not Reduction.ADD or body.owned or body.counts or body.atomic:
            return False
        if shape.operands in _ROUNDED and shape.operands != self.scop.products.value:
            return False
        promotions = {own.buffer.name: own for own in self.scop.promotions}
        read, named = {own.tensor for own in factors}, {self.node.left.tensor, self.node.right.tensor}
        if read != named or len(named) != 2 or not named <= promotions.keys() or body.target not in promotions:
            return False
        target = promotions[body.target].buffer
        if target.sharing is not Sharing.THREAD or target.layout.type is not _SUMS.get(shape.sums):
            return False
        types = ("s8", "u8") if shape.operands == "s8" else (shape.operands,)
        operands: tuple[Fragment | SharedMatrix, ...] = (self.node.left, self.node.right)
        for own in operands:
            buffer = promotions[own.tensor].buffer
            if (
                own.type not in types
                or buffer.sharing is not Sharing.BLOCK
                or buffer.layout.type is not _TYPES[own.type]
            ):
                return False
        return True

    def outside(self) -> isl.Set:
        """The iterations of the loops around the node."""
        return self.place.outside.reset_tuple_id()

    def blocks(self, counts: dict[str, int]) -> isl.Set:
        """The iterations of all loops if the nest had no guards; ``counts``: of iterations of some of its loops."""
        found = self.outside().insert_dims(isl.dim_type.set, self.place.around, len(self.names) - self.place.around)
        for iterator, count in counts.items():
            found = counted(found, self.place.iterators.index(iterator), count)
        return found

    def steps(self) -> list[int]:
        """The positions of the iterators of the steps, the last one first."""
        return sorted((self.place.iterators.index(name) for name in self.summing), reverse=True)

    def has_first_steps(self, wanted: isl.Set) -> bool:
        """Whether each sum that has steps has all that are wanted."""
        own = self.points
        for position in self.steps():
            own = own.project_out(isl.dim_type.set, position, 1).insert_dims(isl.dim_type.set, position, 1)
        return bool(wanted.intersect(own).is_equal(self.points))

    def moved(self, changes: dict[str, str], condition: str) -> isl.Map:
        """``{ iteration -> iteration }``, of which some loops have other values."""
        others = [changes.get(name, name) for name in self.names]
        return self.read(f"{{ [{', '.join(self.names)}] -> [{', '.join(others)}] : {condition} }}")

    def read(self, text: str) -> isl.Map:
        """A relation."""
        return isl.Map.read_from_str(self.points.get_ctx(), text)

    def name_of(self, iterator: str) -> str:
        """What an iterator is called in relations."""
        return self.names[self.place.iterators.index(iterator)]

    # --- sums

    def sums(self) -> Items[isl.PwAff]:
        """The subscripts of a sum."""
        return _local_subscripts(self.statement, self.statement.body.target, self.place.subscripts)

    def wrong_sums(self, blocks: isl.Set) -> Counterexample | None:
        """Whether sums move during the steps, two of them are in one place, or what is left over disturbs others.

        ``blocks``: the iterations of all loops, whatever guards leave out.
        """
        wrong = Counterexample(Violation.WRONG_FRAGMENT, f"sums of {self.statement.name}")
        buffer = self.promotion(self.statement.body.target).buffer
        values = self.sums()
        if len(values) != len(buffer.layout.shape) or buffer.name not in self.place.arrays:
            return wrong
        places = function_map(values, self.place.points.get_space())
        places = places.reset_tuple_id(isl.dim_type.in_).intersect_domain(blocks)
        steps = self.moved({self.name_of(name): f"k{n}" for n, name in enumerate(self.summing)}, "true")
        around, once = self.place.around, places
        for position in self.steps():
            once = once.project_out(isl.dim_type.in_, position, 1)
        fixed = once.move_dims(isl.dim_type.param, once.dim(isl.dim_type.param), isl.dim_type.in_, 0, around)
        if not steps.intersect_domain(blocks).apply_range(places).is_subset(places) or not fixed.is_injective():
            return wrong
        if not places.range().is_subset(all_of(buffer, self.scop.context)):
            return Counterexample(Violation.OUT_OF_BOUNDS, buffer.name)
        run = self.points
        for position in self.steps():
            run = run.project_out(isl.dim_type.set, position, 1)
        left_over = once.domain().subtract(run)
        if left_over.is_empty():
            return None
        depth = self.place.arrays[buffer.name]
        disturbed = _in_array(once.intersect_domain(left_over), depth).intersect(self.touched(buffer.name, depth))
        return None if disturbed.is_empty() else wrong

    def touched(self, buffer: str, depth: int) -> isl.Map:
        """``{ [loops around the array] -> [subscripts] }`` of all that touches it."""
        found: list[isl.Map] = []
        for other in self.others:
            name = str(other.instances.get_tuple_name(isl.dim_type.out))
            statement = next((own for own in self.scop.statements if own.name == name), None)
            for access in () if statement is None else statement.promoted:
                if statement is not None and access.buffer == buffer:
                    places = other.instances.apply_range(access.place)
                    found.append(_in_array(places.reset_tuple_id(isl.dim_type.in_), depth))
        return reduce(isl.Map.union, found)

    def promotion(self, buffer: str) -> Promotion:
        """That of a buffer."""
        return next(own for own in self.scop.promotions if own.buffer.name == buffer)


def read_of(statement: ScopStatement, buffer: str) -> PromotedAccess:
    """Where a statement reads a buffer."""
    return next(own for own in statement.promoted if own.buffer == buffer and own.reads)


def _local_subscripts(statement: ScopStatement, buffer: str, values: Items[isl.PwAff]) -> Items[isl.PwAff]:
    """Those of the access that writes, among those of all that are promoted, in order."""
    begin = 0
    for access in statement.promoted:
        end = begin + int(access.place.dim(isl.dim_type.out))
        if access.buffer == buffer and access.writes:
            return values[begin:end]
        begin = end
    return ()


def all_of(buffer: Buffer, context: isl.Context) -> isl.Set:
    """``[subscripts]`` of all places of an array."""
    names = [f"a{n}" for n in range(len(buffer.layout.shape))]
    sides = (f"0 <= {name} < {extent}" for name, extent in zip(names, buffer.layout.shape, strict=True))
    return isl.Set.read_from_str(context, f"{{ [{', '.join(names)}] : {' and '.join(sides) or 'true'} }}")


def _in_array(places: isl.Map, depth: int) -> isl.Map:
    """Of iterations of all loops, those of the loops around an array."""
    return places.project_out(isl.dim_type.in_, depth, places.dim(isl.dim_type.in_) - depth)


def _counts(nest: LoopTree) -> Iterator[tuple[str, int | None]]:
    """The loops of a nest around one instance, with how many iterations from 0 on each has, guards aside."""
    while isinstance(nest, Loop | Guard):
        match nest:
            case Loop(lower=IndexLiteral(0), upper=IndexLiteral(last), step=1):
                yield nest.iterator, last + 1
            case Loop():
                yield nest.iterator, None
            case Guard(otherwise=otherwise) if otherwise is not None:
                yield "", None
        nest = nest.body if isinstance(nest, Loop) else nest.then
    if not isinstance(nest, Instance):
        yield "", None


def counted(points: isl.Set, position: int, count: int) -> isl.Set:
    """Those whose value in one dimension is from 0 on, among so many."""
    points = points.lower_bound_val(isl.dim_type.set, position, isl.Val.zero(points.get_ctx()))
    return points.upper_bound_val(isl.dim_type.set, position, isl.Val.int_from_si(points.get_ctx(), count - 1))
