"""Proof of matrix instructions: what the lanes of a warp hold is what the instances that they stand for multiply.

A node stands for the nests of all lanes of a warp, which therefore run it together.  The instruction says, by the
figures of its manual (``tc.polyhedral.proof.tensor.matrix_fragments``), which row and column each accumulator of a lane
belongs to, and which lane holds which element of the factors.  So for every instance of a nest, the places that it
reads are compared with what the lanes hold that the instruction takes for its row, its column and its step.  The sums
stay where they are during all steps, each in a place of its own; and elements that are loaded by eights lie side by
side.

Guards in a nest may leave out rows and columns, for which the instruction computes sums, too: these are in places that
nothing else touches as long as the array of the lane lives.  The steps are the first ones, as many as the node says,
for what is held for others is taken for 0.

That the instances are those of the program, each of them once, and that barriers stand between what is written to
shared memory and what any lane of a warp reads, is proven of the nests with all other loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from functools import reduce
from typing import Final, assert_never

import islpy as isl

from tc.base.types import ScalarType
from tc.language.isl.affine import Frame
from tc.language.program.program import Reduction
from tc.language.program.terms import matrix_factors
from tc.polyhedral.analysis.functions import function_map
from tc.polyhedral.analysis.index_functions import fit_for_c, index_function
from tc.polyhedral.execution.execution import Execution, LocalSubscripts, MatrixPlace
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.loops import (
    BLOCK,
    ELEMENT,
    REGISTER,
    Buffer,
    Fragment,
    Guard,
    IndexLiteral,
    Instance,
    Lay,
    Loop,
    LoopTree,
    Sharing,
    variables,
)
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop, ScopStatement
from tc.polyhedral.proof.tensor.matrix_fragments import Fragments, fragments_of

# Threads of a block along x, and a number that those along y are a multiple of: then ``x + 4 * (y % 8)`` is the lane.
_QUADS: Final = 4
_GROUP: Final = 8
_TYPES: Final = {
    "f16": ScalarType.FLOAT16,
    "bf16": ScalarType.BFLOAT16,
    "s8": ScalarType.INT8,
    "u8": ScalarType.UINT8,
}
_SUMS: Final = {"f32": ScalarType.FLOAT32, "s32": ScalarType.INT32}


def check_matrices(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first matrix instructions that compute something else, or that a warp does not run as a whole."""
    for place in execution.matrices:
        found = _Check(scop, place, execution.locals or ()).find()
        if found is not None:
            return found
    return None


class _Check:
    """Of one place."""

    def __init__(self, scop: Scop, place: MatrixPlace, others: Items[LocalSubscripts]) -> None:
        self.scop: Final = scop
        self.others: Final = others
        self.place: Final = place
        self.node: Final = place.node
        self.points: Final = place.points.reset_tuple_id()
        self.instances: Final = place.instances.reset_tuple_id(isl.dim_type.in_)
        self.statement: Final = scop.statement(str(place.instances.get_tuple_name(isl.dim_type.out)))
        self.names: Final = [f"v{n}" for n in range(len(place.iterators))]
        self.counts: Final = dict(_counts(place.node.nest))

    def find(self) -> Counterexample | None:
        """The first failure."""
        fragments = fragments_of(self.node.shape)
        if fragments is None or not self.is_product() or not self.has_whole_nest():
            return Counterexample(Violation.WRONG_FRAGMENT, self.statement.name)
        if not self.has_whole_warps():
            return Counterexample(Violation.ALONE, self.statement.name)
        if not self.has_first_steps():
            return Counterexample(Violation.WRONG_FRAGMENT, f"steps of {self.statement.name}")
        return self.wrong_sums() or self.wrong_factor(fragments, left=True) or self.wrong_factor(fragments, left=False)

    # --- the statement and the loops

    def is_product(self) -> bool:
        """Whether the statement adds up products of the factors, of the types of the instruction."""
        body, shape = self.statement.body, self.node.shape
        factors = matrix_factors(body.value)
        if factors is None or body.reduction is not Reduction.ADD or body.owned or body.counts or body.atomic:
            return False
        promotions = {own.buffer.name: own for own in self.scop.promotions}
        read, named = {own.tensor for own in factors}, {self.node.left.tensor, self.node.right.tensor}
        if read != named or len(named) != 2 or not named <= promotions.keys() or body.target not in promotions:
            return False
        target = promotions[body.target].buffer
        if target.sharing is not Sharing.THREAD or target.layout.type is not _SUMS.get(shape.sums):
            return False
        types = ("s8", "u8") if shape.operands == "s8" else (shape.operands,)
        for own in (self.node.left, self.node.right):
            buffer = promotions[own.tensor].buffer
            if (
                own.type not in types
                or buffer.sharing is not Sharing.BLOCK
                or buffer.layout.type is not _TYPES[own.type]
            ):
                return False
        return True

    def has_whole_nest(self) -> bool:
        """Whether the loops inside are those over rows, columns, pairs and steps, of whole blocks."""
        node, counts = self.node, self.counts
        roles = [node.rows, node.pair, node.steps, *([] if node.columns is None else [node.columns])]
        own = self.place.iterators[self.place.around :]
        if set(own) != counts.keys() or sorted(roles) != sorted(own):
            return False
        rows, columns = counts[node.rows], 1 if node.columns is None else counts[node.columns]
        if rows is None or columns is None or rows % 2 or counts[node.pair] != 2:
            return False
        return counts[node.steps] == node.shape.k or node.limit is not None

    def has_whole_warps(self) -> bool:
        """Whether all lanes of a warp come there together, wherever one of them does."""
        block, threads = self.place.block, self.place.threads
        if len(block) < 2 or len(block) != len(threads) or block[-1] != _QUADS or block[-2] % _GROUP:
            return False
        if self.node.lanes != (self.place.iterators[threads[-1]], self.place.iterators[threads[-2]]):
            return False
        names = self.names[: self.place.around]
        x, y = (self.names[threads[-1]], self.names[threads[-2]])
        others = [{x: "x", y: "y"}.get(name, name) for name in names]
        lanes = f"0 <= x < {_QUADS} and floor(y/{_GROUP}) = floor({y}/{_GROUP})"
        moved = self.read(f"{{ [{', '.join(names)}] -> [{', '.join(others)}] : {lanes} }}")
        outside = self.outside()
        return bool(outside.apply(moved).is_subset(outside))

    def outside(self) -> isl.Set:
        """The iterations of the loops around the node."""
        return self.place.outside.reset_tuple_id()

    def blocks(self, steps: int) -> isl.Set:
        """The iterations of all loops if the nest had no guards, and so many steps."""
        found = self.outside().insert_dims(isl.dim_type.set, self.place.around, len(self.names) - self.place.around)
        for position in range(self.place.around, len(self.names)):
            iterator = self.place.iterators[position]
            count = steps if iterator == self.node.steps else self.counts[iterator]
            assert count is not None, "the nest is whole"
            found = found.lower_bound_val(isl.dim_type.set, position, isl.Val.zero(self.scop.context))
            last = isl.Val.int_from_si(self.scop.context, count - 1)
            found = found.upper_bound_val(isl.dim_type.set, position, last)
        return found

    def has_first_steps(self) -> bool:
        """Whether each sum that has steps has the first ones, as many as there are for the whole warp."""
        wanted = self.blocks(self.node.shape.k)
        if self.node.limit is not None:
            lanes = {own for own in self.node.lanes if own in variables(self.node.limit)}
            if lanes:
                return False
            frame = Frame(self.scop.context, "loops", self.place.iterators, sizes=self.scop.sizes)
            limit = index_function(self.node.limit, frame)
            within = frame.require(self.node.steps).lt_set(limit).reset_tuple_id()
            fit = fit_for_c(self.node.limit, frame).reset_tuple_id()
            if not wanted.is_subset(fit):
                return False
            wanted = wanted.intersect(within)
        position = self.place.iterators.index(self.node.steps)
        own = self.points.project_out(isl.dim_type.set, position, 1).insert_dims(isl.dim_type.set, position, 1)
        return bool(wanted.intersect(own).is_equal(self.points))

    def moved(self, changes: dict[str, str], condition: str) -> isl.Map:
        """``{ iteration -> iteration }``, of which some loops have other values."""
        others = [changes.get(name, name) for name in self.names]
        return self.read(f"{{ [{', '.join(self.names)}] -> [{', '.join(others)}] : {condition} }}")

    def read(self, text: str) -> isl.Map:
        return isl.Map.read_from_str(self.points.get_ctx(), text)

    def name_of(self, iterator: str) -> str:
        return self.names[self.place.iterators.index(iterator)]

    # --- sums

    def wrong_sums(self) -> Counterexample | None:
        """Whether sums move during the steps, two of them are in one place, or what is left over disturbs others."""
        wrong = Counterexample(Violation.WRONG_FRAGMENT, f"sums of {self.statement.name}")
        buffer = self.promotion(self.statement.body.target).buffer
        blocks = self.blocks(self.node.shape.k)
        values = _local_subscripts(self.statement, buffer.name, self.place.subscripts, writes=True)
        if len(values) != len(buffer.layout.shape) or buffer.name not in self.place.arrays:
            return wrong
        places = function_map(values, self.place.points.get_space())
        places = places.reset_tuple_id(isl.dim_type.in_).intersect_domain(blocks)
        steps = self.moved({self.name_of(self.node.steps): "k"}, f"0 <= k < {self.node.shape.k}")
        around, position = self.place.around, self.place.iterators.index(self.node.steps)
        once = places.project_out(isl.dim_type.in_, position, 1)
        fixed = once.move_dims(isl.dim_type.param, once.dim(isl.dim_type.param), isl.dim_type.in_, 0, around)
        if not steps.intersect_domain(blocks).apply_range(places).is_subset(places) or not fixed.is_injective():
            return wrong
        if not places.range().is_subset(_all_of(buffer, self.scop.context)):
            return Counterexample(Violation.OUT_OF_BOUNDS, buffer.name)
        left_over = once.domain().subtract(self.points.project_out(isl.dim_type.set, position, 1))
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

    # --- factors

    def wrong_factor(self, fragments: Fragments, *, left: bool) -> Counterexample | None:
        """Whether a lane holds something else of a factor than what is multiplied there."""
        fragment = self.node.left if left else self.node.right
        frame = self.frame()
        held = self.held(fragments, left=left).intersect_domain(self.points)
        subscripts = [index_function(own, frame) for own in fragment.subscripts]
        every = self.held_by_all(left=left)
        for own in fragment.subscripts:
            if not every.is_subset(fit_for_c(own, frame).reset_tuple_id()):
                return Counterexample(Violation.MISUSED_DIVISION, fragment.tensor)
        function = function_map(subscripts, frame.space()).reset_tuple_id(isl.dim_type.in_)
        buffer = self.promotion(fragment.tensor).buffer
        inside = _all_of(buffer, self.scop.context)
        if not function.intersect_domain(every).range().is_subset(inside):
            return Counterexample(Violation.OUT_OF_BOUNDS, fragment.tensor)
        found = held.apply_range(function)
        wanted = self.instances.apply_range(_access(self.statement, fragment.tensor).place)
        if not wanted.is_subset(found):
            pairs = self.instances.reverse().apply_range(wanted.subtract(found))
            return Counterexample(Violation.WRONG_FRAGMENT, pair_text(isl.UnionMap.from_map(pairs)))
        if not self.lies_so(fragment, subscripts, every):
            return Counterexample(Violation.WRONG_FRAGMENT, f"{fragment.tensor} in {fragment.lay.value}")
        return None

    def held_by_all(self, *, left: bool) -> isl.Set:
        """Whatever any lane holds of a factor: ``[loops around, block, register, element]``."""
        rows, columns = self.counts[self.node.rows], 1
        if self.node.columns is not None:
            columns = self.counts[self.node.columns] or 1
        assert rows is not None, "the nest is whole"
        found = self.outside().insert_dims(isl.dim_type.set, self.place.around, 3)
        elements = self.node.shape.elements
        for number, count in enumerate((rows // 2, 4, elements) if left else (columns, 2, elements)):
            position = self.place.around + number
            found = found.lower_bound_val(isl.dim_type.set, position, isl.Val.zero(self.scop.context))
            last = isl.Val.int_from_si(self.scop.context, count - 1)
            found = found.upper_bound_val(isl.dim_type.set, position, last)
        return found

    def frame(self) -> Frame:
        """That of what lanes hold: the loops around the node, and which register it is."""
        names = (*self.place.iterators[: self.place.around], BLOCK, REGISTER, ELEMENT)
        return Frame(self.scop.context, "held", names, sizes=self.scop.sizes)

    def held(self, fragments: Fragments, *, left: bool) -> isl.Map:
        """``{ iteration -> [loops around, block, register, element] }``: which lane holds what it multiplies."""
        x, y = (self.names[n] for n in (self.place.threads[-1], self.place.threads[-2]))
        node, own = self.node, ", ".join(self.names)
        rows, pair, step = map(self.name_of, (node.rows, node.pair, node.steps))
        column = "0" if node.columns is None else self.name_of(node.columns)
        sums = self.read(f"{{ [{own}] -> [{x} + {_QUADS} * ({y} mod {_GROUP}), 2 * ({rows} mod 2) + {pair}] }}")
        element = sums.apply_range(self.read(fragments.sums).reverse())
        # Of the row and column of the sum, and the step.
        at = element.flat_range_product(self.read(f"{{ [{own}] -> [{step}] }}"))
        chosen = "{ [i, j, k] -> [i, k] }" if left else "{ [i, j, k] -> [k, j] }"
        lanes = at.apply_range(self.read(chosen)).apply_range(self.read(fragments.left if left else fragments.right))
        whole = isl.Map.identity(lanes.get_space().domain().map_from_set()).flat_range_product(lanes)
        block = f"floor({rows}/2)" if left else column
        around = [
            {x: f"l mod {_QUADS}", y: f"{_GROUP} * floor({y}/{_GROUP}) + floor(l/{_QUADS})"}.get(name, name)
            for name in self.names[: self.place.around]
        ]
        source = f"{{ [{own}, l, q, h] -> [{', '.join((*around, block, 'q', 'h'))}] }}"
        return whole.apply_range(self.read(source))

    def lies_so(self, fragment: Fragment, subscripts: list[isl.PwAff], reached: isl.Set) -> bool:
        """Whether eight elements that are loaded at once are side by side, from a multiple of 16 bytes on."""
        frame = self.frame()
        x, y, element = (frame.require(name) for name in (*self.node.lanes, ELEMENT))
        layout = self.promotion(fragment.tensor).buffer.layout
        numbers = (isl.Val.int_from_si(self.scop.context, stride) for stride in layout.strides)
        offset = reduce(isl.PwAff.add, (own.scale_val(number) for own, number in zip(subscripts, numbers, strict=True)))
        elements = self.node.shape.elements
        group, at_once = (isl.Val.int_from_si(self.scop.context, n) for n in (_GROUP, _QUADS * elements))
        match fragment.lay:
            case Lay.APART:
                return True
            case Lay.ROWS:
                place = x.scale_val(isl.Val.int_from_si(self.scop.context, elements)).add(element)
                first = dict.fromkeys((self.node.lanes[0], ELEMENT), "0")
            case Lay.COLUMNS if elements != 2:
                return False
            case Lay.COLUMNS:
                place = y.mod_val(group)
                first = {self.node.lanes[1]: f"{_GROUP} * floor({{}}/{_GROUP})"}
            case _:
                assert_never(fragment.lay)
        begin = offset.sub(place)
        names = [f"w{n}" for n in range(len(frame.iterators))]
        own = dict(zip(frame.iterators, names, strict=True))
        others = [first[it].format(name) if (it := iterator) in first else name for iterator, name in own.items()]
        firsts = self.read(f"{{ [{', '.join(names)}] -> [{', '.join(others)}] }}")
        begins = isl.Map.from_pw_aff(begin).reset_tuple_id(isl.dim_type.in_).intersect_domain(reached)
        offsets = isl.Map.from_pw_aff(offset).reset_tuple_id(isl.dim_type.in_)
        aligned = isl.Map.from_pw_aff(begin.mod_val(at_once)).reset_tuple_id(isl.dim_type.in_).intersect_domain(reached)
        zero = isl.Set.read_from_str(self.scop.context, "{ [0] }")
        return bool(begins.is_subset(firsts.apply_range(offsets)) and aligned.range().is_subset(zero))

    def promotion(self, buffer: str) -> Promotion:
        return next(own for own in self.scop.promotions if own.buffer.name == buffer)


def _access(statement: ScopStatement, buffer: str) -> PromotedAccess:
    return next(own for own in statement.promoted if own.buffer == buffer and own.reads)


def _local_subscripts(
    statement: ScopStatement, buffer: str, values: Items[isl.PwAff], *, writes: bool
) -> Items[isl.PwAff]:
    """Those of one access, among those of all that are promoted, in order."""
    begin = 0
    for access in statement.promoted:
        end = begin + int(access.place.dim(isl.dim_type.out))
        if access.buffer == buffer and access.writes == writes:
            return values[begin:end]
        begin = end
    return ()


def _all_of(buffer: Buffer, context: isl.Context) -> isl.Set:
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
