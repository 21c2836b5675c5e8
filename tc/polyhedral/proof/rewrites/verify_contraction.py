"""Proof of contracted storage: every read finds the value that it finds in the program.

The statements are those of the program, but for one subscript of one temporary, which is taken modulo a number.  Then,
by isl's dataflow analysis (Feautrier, Dataflow analysis of array and scalar references, 1991), the last write before
each read of the temporary is the same as in the program.  Instances of one statement in one step run in any order: no
two of them touch one element, one of them writing it, that touch different ones in the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import islpy as isl

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import access_relation, affine_function, frame_of, iteration_domain
from tc.language.isl.original_order import Blocks, in_one_step, original_order
from tc.language.isl.pieces import maps_of
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Read,
    Role,
    Statement,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Specialization, contiguous_strides
from tc.language.prove.written import initialization
from tc.polyhedral.ir.contractions import Contraction
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text, point_text


def find_wrong_contraction(
    before: Specialization, after: Specialization, made: Contraction, context: isl.Context
) -> Counterexample | None:
    """The first difference, or None.  It holds for all values of the sizes that are open."""
    tensor = before.program.tensor(made.tensor)
    shape = before.layouts[made.tensor].shape
    wanted = [_modulo(statement, made) for statement in before.program.statements]
    shorter = replace(tensor, shape=_with(tensor.shape, made.dimension, Literal(made.size, INDEX_TYPE)))
    tensors = tuple(shorter if own is tensor else own for own in before.program.tensors)
    if (
        list(after.program.statements) != wanted
        or after.program.tensors != tensors
        or tensor.role is not Role.TEMPORARY
    ):
        return Counterexample(Violation.CHANGED, f"other statements or tensors than with {made.tensor} contracted")
    held, whole = after.layouts[made.tensor], before.layouts[made.tensor]
    others = {**after.layouts, made.tensor: whole} == before.layouts
    lies = held.shape == _with(shape, made.dimension, made.size) and held.strides == contiguous_strides(held.shape)
    if not (others and lies and held.type is whole.type):
        return Counterexample(Violation.CHANGED, f"the elements of {made.tensor}")
    found, kept = (_Accesses.of(own, made.tensor, context) for own in (after, before))
    if found is None or kept is None:
        return Counterexample(Violation.CHANGED, f"an access to {made.tensor} is not affine")
    together = found.in_one_step().subtract(kept.in_one_step())
    if not together.is_empty():
        return Counterexample(Violation.OVERLAPPING, pair_text(together))
    for own, original in zip(found.flows(), kept.flows(), strict=True):
        different = own.get_must_dependence().subtract(original.get_must_dependence())
        if not different.is_empty():
            return Counterexample(Violation.REORDERED, pair_text(different))
        missing = own.get_must_no_source().domain().subtract(original.get_must_no_source().domain())
        if not missing.is_empty():
            return Counterexample(Violation.NOT_LOADED, point_text(missing))
    return None


Item = TypeVar("Item")


@frozen
class _Accesses:
    """What statements read and write of a tensor, and when.

    Each read of a statement is one for itself: an instance may read several elements.  Initializations are statements
    of their own, before those that they belong to.
    """

    reads: tuple[isl.UnionMap, ...]
    writes: isl.UnionMap
    order: isl.UnionMap
    depths: Mapping[str, int]

    @classmethod
    def of(cls, specialization: Specialization, tensor: str, context: isl.Context) -> _Accesses | None:
        """None where a domain or a subscript is not affine."""
        reads, writes = list[isl.UnionMap](), isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
        standing, depths = list[tuple[Blocks, isl.Set]](), dict[str, int]()
        for statement in specialization.program.statements:
            for own in _parts(statement, tensor):
                frame = frame_of(own, context, sizes=specialization.sizes)
                domain = iteration_domain(own, frame)
                accesses = list(_accesses(own, tensor))
                if not accesses:
                    continue
                every = [part for subscripts, _ in accesses for part in subscripts]
                if domain is None or any(affine_function(part, frame) is None for part in every):
                    return None
                standing.append((own.blocks, domain))
                depths[own.name] = len(own.blocks)
                nothing = (None,) * len(accesses[0][0])
                for subscripts, is_write in accesses:
                    relation = access_relation(tensor, subscripts, nothing, frame).intersect_domain(domain)
                    if is_write:
                        writes = writes.union(isl.UnionMap.from_map(relation))
                    else:
                        reads.append(isl.UnionMap.from_map(relation))
        return cls(tuple(reads), writes, original_order(standing, context), depths)

    def flows(self) -> Iterator[isl.UnionFlow]:
        """For each read, the last write before it of the same element, or that there is none."""
        for read in self.reads:
            access = isl.UnionAccessInfo.from_sink(read).set_must_source(self.writes)
            yield access.set_schedule_map(self.order).compute_flow()

    def in_one_step(self) -> isl.UnionMap:
        """Pairs of instances of one statement in one step that touch one element, at least one of them writing."""
        touched = reduce(isl.UnionMap.union, self.reads, self.writes)
        pairs = self.writes.apply_range(touched.reverse())
        found = isl.UnionMap.empty(pairs.get_space())
        for own in maps_of(pairs):
            name, space = own.get_tuple_name(isl.dim_type.in_), own.get_space()
            if name == own.get_tuple_name(isl.dim_type.out):
                apart = own.subtract(isl.Map.identity(space))
                together = in_one_step(space, self.depths[name]) if self.depths[name] else isl.Map.universe(space)
                found = found.union(isl.UnionMap.from_map(apart.intersect(together)))
        return found


def _parts(statement: Statement, tensor: str) -> Iterator[Statement]:
    """A statement that initializes, as two."""
    if statement.initialize and statement.target == tensor:
        first = initialization(statement)
        zero = Literal(0, INDEX_TYPE)
        yield replace(first, name=f"{statement.name}_init", value=zero, reduction=None, initialize=False)
    yield statement


def _accesses(statement: Statement, tensor: str) -> Iterator[tuple[tuple[Expression, ...], bool]]:
    """The subscripts with which a statement touches the tensor, and whether it writes."""
    for part in (statement.value, *statement.subscripts, *statement.conditions, *statement.required):
        yield from ((read.subscripts, False) for read in reads_in(part) if read.tensor == tensor)
    if statement.target == tensor:
        if statement.reduction is not None:
            yield statement.subscripts, False
        yield statement.subscripts, True


def _modulo(statement: Statement, made: Contraction) -> Statement:
    """The statement of the program, with one subscript of a tensor taken modulo a number."""

    def change(expression: Expression) -> Expression:
        changed = rebuild(expression, change)
        if isinstance(changed, Read) and changed.tensor == made.tensor:
            return replace(changed, subscripts=_remainders(changed.subscripts, made))
        return changed

    own = statement.subscripts
    subscripts = _remainders(own, made) if statement.target == made.tensor else own
    return replace(statement, value=change(statement.value), subscripts=subscripts)


def _remainders(subscripts: tuple[Expression, ...], made: Contraction) -> tuple[Expression, ...]:
    own = subscripts[made.dimension]
    if isinstance(own, Literal) or made.size == 1:
        value = int(own.value) % made.size if isinstance(own, Literal) else 0
        taken: Expression = Literal(value, INDEX_TYPE)
    else:
        taken = Binary(BinaryOperator.REMAINDER, own, Literal(made.size, INDEX_TYPE), INDEX_TYPE)
    return _with(subscripts, made.dimension, taken)


def _with(items: tuple[Item, ...], position: int, item: Item) -> tuple[Item, ...]:
    return (*items[:position], item, *items[position + 1 :])
