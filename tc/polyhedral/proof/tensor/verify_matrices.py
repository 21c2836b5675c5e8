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

from collections.abc import Sequence as Items
from functools import reduce
from typing import assert_never

import islpy as isl

from tc.language.isl.affine import Frame
from tc.polyhedral.analysis.functions import function_map
from tc.polyhedral.analysis.index_functions import fit_for_c, index_function
from tc.polyhedral.execution.execution import Execution, LocalSubscripts, MatrixPlace
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.loops import BLOCK, ELEMENT, REGISTER, Fragment, GroupMma, Lay, Mma, variables
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.tensor.matrix_fragments import Fragments, fragments_of
from tc.polyhedral.proof.tensor.nest_check import GROUP, QUADS, NestCheck, all_of, counted, read_of
from tc.polyhedral.proof.tensor.verify_groups import find_in_group


def check_matrices(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first matrix instructions that compute something else, or that a warp does not run as a whole."""
    others = execution.locals or ()
    for place in execution.matrices:
        found = _find(scop, place, execution, others)
        if found is not None:
            return found
    return None


def _find(
    scop: Scop, place: MatrixPlace, execution: Execution, others: Items[LocalSubscripts]
) -> Counterexample | None:
    match place.node:
        case Mma() as node:
            return _Check(scop, place, node, others, (node.steps,)).find()
        case GroupMma() as node:
            return find_in_group(scop, place, node, execution)
        case _:
            assert_never(place.node)


class _Check(NestCheck[Mma]):
    """Of one place."""

    def find(self) -> Counterexample | None:
        """The first failure."""
        fragments = fragments_of(self.node.shape)
        if fragments is None or not self.is_product() or not self.has_whole_nest():
            return Counterexample(Violation.WRONG_FRAGMENT, self.statement.name)
        if not self.has_whole_warps():
            return Counterexample(Violation.ALONE, self.statement.name)
        wanted = self.wanted_steps()
        if wanted is None or not self.has_first_steps(wanted):
            return Counterexample(Violation.WRONG_FRAGMENT, f"steps of {self.statement.name}")
        return (
            self.wrong_sums(self.whole())
            or self.wrong_factor(fragments, left=True)
            or self.wrong_factor(fragments, left=False)
        )

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
        if len(block) < 2 or len(block) != len(threads) or block[-1] != QUADS or block[-2] % GROUP:
            return False
        if self.node.lanes != (self.place.iterators[threads[-1]], self.place.iterators[threads[-2]]):
            return False
        names = self.names[: self.place.around]
        x, y = (self.names[threads[-1]], self.names[threads[-2]])
        others = [{x: "x", y: "y"}.get(name, name) for name in names]
        lanes = f"0 <= x < {QUADS} and floor(y/{GROUP}) = floor({y}/{GROUP})"
        moved = self.read(f"{{ [{', '.join(names)}] -> [{', '.join(others)}] : {lanes} }}")
        outside = self.outside()
        return bool(outside.apply(moved).is_subset(outside))

    def whole(self) -> isl.Set:
        """The iterations of all loops if the nest had no guards, and all steps of a block."""
        counts = {name: count for name, count in self.counts.items() if count is not None}
        return self.blocks({**counts, self.node.steps: self.node.shape.k})

    def wanted_steps(self) -> isl.Set | None:
        """Of all iterations, those of the first steps, as many as a warp has; None if lanes have unlike ones."""
        wanted = self.whole()
        if self.node.limit is not None:
            lanes = {own for own in self.node.lanes if own in variables(self.node.limit)}
            if lanes:
                return None
            frame = Frame(self.scop.context, "loops", self.place.iterators, sizes=self.scop.sizes)
            limit = index_function(self.node.limit, frame)
            within = frame.require(self.node.steps).lt_set(limit).reset_tuple_id()
            fit = fit_for_c(self.node.limit, frame).reset_tuple_id()
            if not wanted.is_subset(fit):
                return None
            wanted = wanted.intersect(within)
        return wanted

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
        inside = all_of(buffer, self.scop.context)
        if not function.intersect_domain(every).range().is_subset(inside):
            return Counterexample(Violation.OUT_OF_BOUNDS, fragment.tensor)
        found = held.apply_range(function)
        wanted = self.instances.apply_range(read_of(self.statement, fragment.tensor).place)
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
            found = counted(found, self.place.around + number, count)
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
        sums = self.read(f"{{ [{own}] -> [{x} + {QUADS} * ({y} mod {GROUP}), 2 * ({rows} mod 2) + {pair}] }}")
        element = sums.apply_range(self.read(fragments.sums).reverse())
        # Of the row and column of the sum, and the step.
        at = element.flat_range_product(self.read(f"{{ [{own}] -> [{step}] }}"))
        chosen = "{ [i, j, k] -> [i, k] }" if left else "{ [i, j, k] -> [k, j] }"
        lanes = at.apply_range(self.read(chosen)).apply_range(self.read(fragments.left if left else fragments.right))
        whole = isl.Map.identity(lanes.get_space().domain().map_from_set()).flat_range_product(lanes)
        block = f"floor({rows}/2)" if left else column
        around = [
            {x: f"l mod {QUADS}", y: f"{GROUP} * floor({y}/{GROUP}) + floor(l/{QUADS})"}.get(name, name)
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
        group, at_once = (isl.Val.int_from_si(self.scop.context, n) for n in (GROUP, QUADS * elements))
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
                first = {self.node.lanes[1]: f"{GROUP} * floor({{}}/{GROUP})"}
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
