"""What blocks read was written before: in this step, in an earlier one, or ahead of the block.

Statements run in the order of ``tc.language.isl.original_order``.  A statement reads its whole right-hand side, then
``op=!`` gives its elements the neutral element, then it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.affine import (
    Frame,
    access_relation,
    affine_function,
    frame_of,
    guard_domain,
    isl_name,
    iteration_domain,
)
from tc.language.isl.original_order import in_one_step, runs_later
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import MAX_OPERATIONS, is_out_of_operations, isl_context
from tc.language.program.guards import GuardedRead, guarded_reads
from tc.language.program.program import Expression, Program, Read, Role, Statement, Tensor, iterators_in
from tc.language.program.specialization import Sizes
from tc.language.prove.coverage import Problem, witness_of
from tc.language.prove.leaving import with_least_parameters
from tc.language.prove.written import gives_elements, initialization
from tc.language.text.expression_text import expression_text

# What is wrong for all sizes from here on is wrong: with few steps, none may need an earlier one.
_LEAST: Final = 4


def find_unwritten(
    program: Program, max_operations: int = MAX_OPERATIONS, sizes: Sizes = ()
) -> list[tuple[Problem, Read]]:
    """Elements that are read before anything is written to them, for all sizes that are not small.

    Of a specialized program: for the sizes that it has, or some of those that stay open (``sizes``).  ``isl.Error``
    when isl spends more than ``max_operations``.
    """
    written = _in_blocks(program)
    if not written:
        return []
    with isl_context(max_operations) as context:
        prover = _Prover(program, context, sizes)
        return [found for name in written for found in prover.unwritten(program.tensor(name))]


def come_in(program: Program, names: Collection[str], max_operations: int = MAX_OPERATIONS) -> frozenset[str]:
    """Those of the tensors of which a block overwrites elements, for some sizes, that it read before.

    What it reads and nothing ever writes was forgotten.
    """
    written = [name for name in _in_blocks(program) if name in names]
    if not written:
        return frozenset()
    with isl_context(max_operations) as context:
        prover = _Prover(program, context, ())
        return frozenset(name for name in written if prover.is_overwritten(program.tensor(name)))


def may_be_overwritten(program: Program, statement: Statement, guarded: GuardedRead) -> bool:
    """Whether another instance of a statement in a block, in the same step, may write the element of its target that
    one reads.  A subscript that is not affine may be any; what isl cannot say may be.
    """
    unknown = [None] * len(statement.subscripts)
    with isl_context() as context:
        frame = frame_of(statement, context, integer_parameters(program))
        domain = iteration_domain(statement, frame)
        if domain is None:
            return True
        try:
            inside = domain.intersect(guard_domain(guarded, frame))
            read = access_relation(statement.target, guarded.read.subscripts, unknown, frame)
            written = access_relation(statement.target, statement.subscripts, unknown, frame)
            pairs = read.intersect_domain(inside).apply_range(written.intersect_domain(domain).reverse())
            pairs = pairs.intersect(in_one_step(pairs.get_space(), len(statement.blocks)))
            if statement.reduction is None:
                pairs = pairs.subtract(isl.Map.identity(pairs.get_space()))
            return not pairs.is_empty()
        except isl.Error as error:
            if not is_out_of_operations(error):
                raise
            return True


def _in_blocks(program: Program) -> list[str]:
    """The tensors that are written in blocks, and have no values from outside."""
    names = {statement.target for statement in program.statements if statement.blocks}
    return [t.name for t in program.tensors if t.name in names and t.role in (Role.OUTPUT, Role.TEMPORARY)]


@frozen
class _Missing:
    """``pairs``: ``{ instance -> element }``, where a read of a statement finds nothing."""

    statement: Statement
    read: Read
    pairs: isl.Map


class _Prover:
    def __init__(self, program: Program, context: isl.Context, sizes: Sizes) -> None:
        self.program = program
        self.context = context
        self.sizes = sizes
        names = integer_parameters(program)
        self.parameters = names[len(sizes) :]
        # Scalars are whatever they are, so that only what is wrong for all of them is known to be wrong.
        self.possible = possible_parameters(program, context, self.parameters, 1)
        self.usual = possible_parameters(program, context, self.parameters, _LEAST)

    def unwritten(self, tensor: Tensor) -> Iterator[tuple[Problem, Read]]:
        for missing in self.missing(tensor):
            values = missing.pairs.params()
            if self.sizes or (self.usual.is_subset(values) and not self.usual.is_empty()):
                yield self.problem(missing), missing.read

    def is_overwritten(self, tensor: Tensor) -> bool:
        """Whether elements that are read before they are written are written later, or may be."""
        writers = [
            self.access(statement, statement.subscripts, tensor)
            for statement in self.program.statements
            if statement.target == tensor.name
        ]
        for missing in self.missing(tensor):
            early = missing.pairs.range().intersect_params(self.possible)
            if any(written is None or not written.range().is_disjoint(early) for written in writers):
                return True
        return False

    def missing(self, tensor: Tensor) -> Iterator[_Missing]:
        """Reads of elements that nothing gives before; what is not affine is left to the proof for given sizes."""
        given = [
            (position, statement, self.access(first, first.subscripts, tensor))
            for position, statement in enumerate(self.program.statements)
            if statement.target == tensor.name and gives_elements(statement)
            for first in (initialization(statement, tensor.shape),)
        ]
        for position, statement in enumerate(self.program.statements):
            for guarded in self.reads(statement, tensor.name):
                read = self.access(statement, guarded.read.subscripts, tensor, guarded)
                if read is None:
                    continue
                for behind, writer, written in given:
                    if written is None:
                        return
                    later = runs_later(
                        read.get_space().domain(),
                        statement.blocks,
                        written.get_space().domain(),
                        writer.blocks,
                        is_behind=position > behind,
                    )
                    if not later.is_empty():
                        read = read.subtract(later.apply_range(written))
                if not self.possible.intersect(read.params()).is_empty():
                    yield _Missing(statement, guarded.read, read)

    def reads(self, statement: Statement, tensor: str) -> Iterator[GuardedRead]:
        """Of a tensor: in the value, and of what is updated."""
        for expression in (statement.value, *statement.subscripts):
            yield from (guarded for guarded in guarded_reads(expression) if guarded.read.tensor == tensor)
        if statement.target == tensor and statement.reduction is not None and not statement.initialize:
            yield GuardedRead(Read(tensor, statement.subscripts, statement.value.type), ())

    def access(
        self,
        statement: Statement,
        subscripts: tuple[Expression, ...],
        tensor: Tensor,
        guarded: GuardedRead | None = None,
    ) -> isl.Map | None:
        """``{ instance -> element }``; what is found by an index may be any of the dimension.

        None where a range, or an extent that is needed, is not affine.
        """
        frame = frame_of(statement, self.context, self.parameters, self.sizes)
        domain = iteration_domain(statement, frame)
        if domain is None:
            return None
        if guarded is not None:
            domain = domain.intersect(guard_domain(guarded, frame))
        touched = isl.Map.from_domain(domain)
        for subscript, extent in zip(subscripts, tensor.shape, strict=True):
            function = affine_function(subscript, frame)
            if function is not None:
                touched = touched.flat_range_product(isl.Map.from_pw_aff(function))
                continue
            end = affine_function(extent, Frame(self.context, "", ("d",), self.parameters, self.sizes))
            if end is None:
                return None
            own = Frame(self.context, "", ("d",), self.parameters, self.sizes)
            inside = own.require("d").ge_set(own.constant(0)).intersect(own.require("d").lt_set(end))
            touched = touched.flat_range_product(isl.Map.from_domain_and_range(frame.universe(), inside))
        return touched.set_tuple_name(isl.dim_type.out, isl_name(tensor.name))

    def problem(self, missing: _Missing) -> Problem:
        """What is read too early, with the first step and element."""
        statement, pairs = missing.statement, missing.pairs
        count, width = len(statement.iterators), pairs.dim(isl.dim_type.out)
        points = pairs.move_dims(isl.dim_type.in_, count, isl.dim_type.out, 0, width).domain()
        names = (*self.parameters, *(name for name, _ in self.sizes))
        point = with_least_parameters(points, len(names)).lexmin().sample_point()
        values = [point.get_coordinate_val(isl.dim_type.set, d) for d in range(count + width)]
        element = f"`{missing.read.tensor}({', '.join(map(str, values[count:]))})`"
        steps = ", ".join(
            f"{iterator.name} = {value}"
            for iterator, value in zip(statement.sequence or statement.iterators, values, strict=False)
        )
        found = witness_of(pairs.range(), pairs.params(), names)
        where = f" at {steps}" if steps else ""
        message = f"{element} is read{where} before it is written{found.sizes}"
        return Problem(message, self.hint(missing), statement, is_overlap=True)

    def hint(self, missing: _Missing) -> str:
        """Values to start from, or a guard."""
        read = missing.read
        start = f"write these elements of `{read.tensor}` before the block"
        if any(
            own.target == read.tensor and own.subscripts == read.subscripts and own.blocks == missing.statement.blocks
            for own in self.program.statements
        ):
            return f"{start}, or let the statement that writes them in this step come first"
        steps = {iterator.name for iterator in missing.statement.sequence} & iterators_in(read.subscripts)
        text = expression_text(read)
        if not steps:
            return start
        step = min(steps)
        return f"{start}, or read them only where they are written: `{step} > 0 ? {text} : 0`"
