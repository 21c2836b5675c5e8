"""Proof of matrix instructions of groups of four warps, which read both factors from shared memory by themselves.

An instruction says, by the figures of its manual (``tc.polyhedral.proof.tensor.matrix_fragments``), which row and
column each sum of a lane belongs to, and at which byte, from the first element of a factor on, it finds an element.  So
for every instance of a nest, the place that it reads is compared with the one where the instruction finds the element
of its row, its column and its step.  Both are offsets before pieces change places, by which no two bytes get one place,
which does the same at addresses as at offsets: arrays that are swizzled begin at multiples of
eight rows, and a first element is in the first of eight.

Other lanes and other warps read what an instance reads, so that a barrier stands between that and every write,
whichever thread has it (``tc.polyhedral.proof.verify_threads``).  As these reads pass by what orders other accesses,
every barrier has a fence before it.

Instructions have ended when the node has, or at the next barrier, before which nothing else touches their sums, as is
shown there, too: what they read is behind that barrier from every write.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import islpy as isl

from tc.base.grid import WARP
from tc.language.isl.affine import Frame
from tc.polyhedral.analysis.functions import function_map
from tc.polyhedral.analysis.index_functions import fit_for_c, index_function
from tc.polyhedral.execution.execution import Execution, MatrixPlace
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.loops import Barrier, GroupMma, Guard, IndexLiteral, Loop, LoopTree, SharedMatrix, variables
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW, SWIZZLED_ROWS
from tc.polyhedral.proof.tensor.matrix_fragments import GroupFragments, group_fragments_of
from tc.polyhedral.proof.tensor.nest_check import GROUP, QUADS, NestCheck, counted, read_of

# Warps of a group.
_WARPS: Final = 4
# Descriptors count bytes in pieces of 16, of which they have 14 bits.
_PIECE: Final = 16
_FARTHEST: Final = 1 << 18


def find_in_group(scop: Scop, place: MatrixPlace, node: GroupMma, execution: Execution) -> Counterexample | None:
    """The first failure of one place."""
    for other in execution.nodes:
        if isinstance(other, Barrier) and not other.fenced:
            return Counterexample(Violation.UNFENCED, other.statement)
    return _Check(scop, place, node, execution.locals or (), (node.chunks, node.steps)).find()


class _Check(NestCheck[GroupMma]):
    """Of one place."""

    def find(self) -> Counterexample | None:
        """The first failure."""
        node = self.node
        fragments = group_fragments_of(node.shape, node.left, node.right)
        if fragments is None or not self.is_product() or not self.has_whole_nest() or not self.has_places():
            return Counterexample(Violation.WRONG_FRAGMENT, self.statement.name)
        if not self.has_whole_groups():
            return Counterexample(Violation.ALONE, self.statement.name)
        whole = self.whole()
        if whole is None or not self.has_first_steps(whole):
            return Counterexample(Violation.WRONG_FRAGMENT, f"steps of {self.statement.name}")
        return (
            self.wrong_sums(whole)
            or self.wrong_registers(whole)
            or self.wrong_factor(fragments, whole, left=True)
            or self.wrong_factor(fragments, whole, left=False)
        )

    # --- the loops

    def has_whole_nest(self) -> bool:
        """Whether the loops inside are those over chunks, then of one block of rows, and of its columns and steps."""
        node, counts = self.node, self.counts
        own = self.place.iterators[self.place.around :]
        roles = [node.chunks, node.rows, node.columns or "", node.pair, node.steps]
        if set(own) != counts.keys() or sorted(roles) != sorted(own) or own[0] != node.chunks:
            return False
        wanted = {node.rows: 2, node.columns: node.shape.n // GROUP, node.pair: 2, node.steps: node.shape.k}
        return all(counts[name] == count for name, count in wanted.items() if name is not None)

    def has_places(self) -> bool:
        """Whether both factors lie in swizzled arrays, whose rows and panels are as far apart as a descriptor says."""
        operands = (self.node.left, self.node.right)
        for own in operands:
            swizzle = self.promotion(own.tensor).buffer.swizzle
            if swizzle is None or swizzle.row % SWIZZLED_ROW or swizzle.panel % SWIZZLED_ROWS:
                return False
            if any(number % _PIECE or not 0 <= number < _FARTHEST for number in (own.stride, own.leading)):
                return False
        return True

    def has_whole_groups(self) -> bool:
        """Whether all lanes of a group come there together, wherever one of them does."""
        block, threads = self.place.block, self.place.threads
        if len(block) != 3 or len(threads) != 3 or block[1:] != (GROUP, QUADS) or block[0] % _WARPS:
            return False
        if self.node.lanes != tuple(self.place.iterators[n] for n in reversed(threads)):
            return False
        return bool(self.outside().apply(self.other_lanes()).is_subset(self.outside()))

    def other_lanes(self) -> isl.Map:
        """From iterations around the node to those of all lanes of the group."""
        names = self.names[: self.place.around]
        z, y, x = (self.names[n] for n in self.place.threads)
        others = [{x: "x", y: "y", z: "z"}.get(name, name) for name in names]
        lanes = f"0 <= x < {QUADS} and 0 <= y < {GROUP} and floor(z/{_WARPS}) = floor({z}/{_WARPS})"
        return self.read(f"{{ [{', '.join(names)}] -> [{', '.join(others)}] : {lanes} }}")

    def whole(self) -> isl.Set | None:
        """The iterations of all loops if the nest had no guards; None where the lanes of a group have unlike chunks."""
        counts = {name: count for name, count in self.counts.items() if count is not None and name != self.node.chunks}
        found = self.blocks(counts)
        loop: LoopTree = self.node.nest
        while isinstance(loop, Guard):
            loop = loop.then
        assert isinstance(loop, Loop), "the nest is whole"
        frame = Frame(self.scop.context, "loops", self.place.iterators, sizes=self.scop.sizes)
        if variables(loop.upper) & {*self.node.lanes, *self.place.iterators[self.place.around :]}:
            return None
        if (loop.lower, loop.step) != (IndexLiteral(0), 1):
            return None
        last, chunk = index_function(loop.upper, frame), frame.require(self.node.chunks)
        found = found.intersect(chunk.le_set(last).reset_tuple_id())
        found = found.lower_bound_val(
            isl.dim_type.set, self.place.iterators.index(self.node.chunks), isl.Val.zero(self.scop.context)
        )
        return found if found.is_subset(fit_for_c(loop.upper, frame).reset_tuple_id()) else None

    # --- sums

    def wrong_registers(self, whole: isl.Set) -> Counterexample | None:
        """Whether the sums of a row are not one behind the other, as the registers of an instruction are passed."""
        layout = self.promotion(self.statement.body.target).buffer.layout
        numbers = (isl.Val.int_from_si(self.scop.context, stride) for stride in layout.strides)
        values = (own.scale_val(number) for own, number in zip(self.sums(), numbers, strict=True))
        offset = isl.Map.from_pw_aff(reduce(isl.PwAff.add, values)).reset_tuple_id(isl.dim_type.in_)
        column, pair = self.name_of(self.node.columns or ""), self.name_of(self.node.pair)
        own = ", ".join(self.names)
        behind = self.read(f"{{ [{own}] -> [2 * {column} + {pair}] }}")
        first = self.moved({column: "0", pair: "0"}, "true").apply_range(offset)
        wanted = first.flat_range_product(behind).apply_range(self.read("{ [o, d] -> [o + d] }"))
        right = wanted.intersect_domain(whole).is_subset(offset)
        return None if right else Counterexample(Violation.WRONG_FRAGMENT, f"registers of {self.statement.name}")

    # --- factors

    def wrong_factor(self, fragments: GroupFragments, whole: isl.Set, *, left: bool) -> Counterexample | None:
        """Whether an instruction finds something else where it looks for what an instance multiplies."""
        matrix = self.node.left if left else self.node.right
        wrong = Counterexample(Violation.WRONG_FRAGMENT, f"{matrix.tensor} in shared memory")
        frame = Frame(
            self.scop.context,
            "first",
            (*self.place.iterators[: self.place.around], self.node.chunks),
            sizes=self.scop.sizes,
        )
        inner = len(self.names) - self.place.around - 1
        firsts = whole.project_out(isl.dim_type.set, self.place.around + 1, inner)
        if not all(firsts.is_subset(fit_for_c(own, frame).reset_tuple_id()) for own in matrix.subscripts):
            return Counterexample(Violation.MISUSED_DIVISION, matrix.tensor)
        first = self.first(matrix, frame).intersect_domain(firsts)
        if not self.is_named_alike(first) or not _begins_rows(first, turned=matrix.turned):
            return wrong
        relative = self.relative(fragments, left=left)
        found = self.read(f"{{ [{', '.join(self.names)}] -> [{', '.join(self.names[: self.place.around + 1])}] }}")
        found = found.apply_range(first).flat_range_product(relative)
        found = found.apply_range(self.read("{ [o, d] -> [o + d] }")).intersect_domain(whole)
        layout = self.promotion(matrix.tensor).buffer.layout
        bytes = counted(isl.Set.universe(found.get_space().range()), 0, layout.span * layout.type.itemsize)
        if not found.range().is_subset(bytes):
            return Counterexample(Violation.OUT_OF_BOUNDS, matrix.tensor)
        places = self.instances.apply_range(read_of(self.statement, matrix.tensor).place)
        wanted = places.apply_range(self.bytes_in(matrix))
        if not wanted.is_subset(found):
            pairs = self.instances.reverse().apply_range(wanted.subtract(found))
            return Counterexample(Violation.WRONG_FRAGMENT, pair_text(isl.UnionMap.from_map(pairs)))
        return None

    def first(self, matrix: SharedMatrix, frame: Frame) -> isl.Map:
        """``{ [loops around, chunk] -> [byte] }`` of the first element."""
        subscripts = [index_function(own, frame) for own in matrix.subscripts]
        found = function_map(subscripts, frame.space()).reset_tuple_id(isl.dim_type.in_)
        return found.apply_range(self.bytes_in(matrix))

    def bytes_in(self, matrix: SharedMatrix) -> isl.Map:
        """``{ [subscripts] -> [byte] }`` of an array, before pieces change places."""
        buffer = self.promotion(matrix.tensor).buffer
        assert buffer.swizzle is not None, "it has places"
        terms = (f"{stride * buffer.layout.type.itemsize} * a{n}" for n, stride in enumerate(buffer.layout.strides))
        names = ", ".join(f"a{n}" for n in range(len(buffer.layout.strides)))
        offset = self.read(f"{{ [{names}] -> [{' + '.join(terms)}] }}")
        return offset.apply_range(buffer.swizzle.panels(self.scop.context))

    def is_named_alike(self, first: isl.Map) -> bool:
        """Whether all lanes of a group name the same element."""
        own = [f"a{n}" for n in range(self.place.around)]
        flat = self.read(f"{{ [[{', '.join(own)}] -> [q]] -> [{', '.join((*own, 'q'))}] }}")
        lanes = self.other_lanes().product(self.read("{ [q] -> [q] }")).apply_domain(flat).apply_range(flat)
        return bool(lanes.intersect_domain(first.domain()).apply_range(first).is_subset(first))

    def relative(self, fragments: GroupFragments, *, left: bool) -> isl.Map:
        """``{ iteration -> [byte] }``: how far behind the first one the instruction finds what it multiplies there."""
        z, y, x = (self.names[n] for n in self.place.threads)
        node, own = self.node, ", ".join(self.names)
        rows, column, pair, step = map(self.name_of, (node.rows, node.columns or "", node.pair, node.steps))
        lane = f"{x} + {QUADS} * {y} + {WARP} * ({z} mod {_WARPS})"
        sums = self.read(f"{{ [{own}] -> [{lane}, 4 * {column} + 2 * {rows} + {pair}] }}")
        at = sums.apply_range(self.read(fragments.sums).reverse()).flat_range_product(
            self.read(f"{{ [{own}] -> [{step}] }}")
        )
        chosen = "{ [i, j, k] -> [i, k] }" if left else "{ [i, j, k] -> [k, j] }"
        return at.apply_range(self.read(chosen)).apply_range(self.read(fragments.left if left else fragments.right))


def _begins_rows(first: isl.Map, *, turned: bool) -> bool:
    """Whether elements are the first of pieces in the first of eight rows, with room for the steps behind them."""
    last = 0 if turned else SWIZZLED_ROW - 2 * _PIECE
    text = f"{{ [o] : o mod {_PIECE} = 0 and o mod {SWIZZLED_ROWS} <= {last} }}"
    return bool(first.range().is_subset(isl.Set.read_from_str(first.get_ctx(), text)))
