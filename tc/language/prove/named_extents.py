"""The values of extents that a definition knows by name only (``T.0``), for the sizes of a call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tc.language.algebra.extents import Writing, extent_name, named_extent, written_extent
from tc.language.algebra.fold import substitute
from tc.language.algebra.open_extents import open_extent
from tc.language.algebra.polynomial import Atoms, Polynomial, constant
from tc.language.algebra.specialized import specialized
from tc.language.program.program import (
    INDEX_TYPE,
    Expression,
    Literal,
    Program,
    SizeReference,
    Statement,
    iterators_in,
    walk,
)
from tc.language.program.specialization import Sizes
from tc.language.program.written_elements import chosen_by, scatters
from tc.language.prove.leaving import intervals_of
from tc.language.prove.written import gives_elements


def has_named_extent(expression: Expression) -> bool:
    """Whether an expression contains a ``T.0``."""
    return any(isinstance(e, SizeReference) and named_extent(e) is not None for e in walk(expression))


def named_extents(
    program: Program, values: Mapping[Expression, Expression], sizes: Sizes = ()
) -> dict[Expression, Expression]:
    """What each ``T.0`` in the shapes of a program is, given the values of its sizes and scalars.

    It covers what the statements write whose own ranges do not follow that extent.  ``sizes``: those that stay open, on
    which an extent may depend; what isl cannot express is left out.
    """
    waiting = {
        (tensor.name, dimension): extent_name(tensor.name, dimension)
        for tensor in program.tensors
        for dimension, extent in enumerate(tensor.shape)
        if any(e == extent_name(tensor.name, dimension) for e in walk(extent))
    }
    found: dict[Expression, Expression] = {}
    progressing = True
    while waiting and progressing:
        progressing = False
        known = {**values, **found}
        for (tensor, dimension), name in list(waiting.items()):
            general = [statement for statement in program.statements if statement.target == tensor]
            writers = [(specialized(s, known), iterators_in([s.subscripts[dimension]])) for s in general]
            if any(_extents_in(statement) - {name} for statement, _ in writers):
                continue
            free = [s for s, names in writers if not _extents_in(s) and not _is_empty(s, names)]
            extent = _hull(free, dimension, program.sizes, sizes)
            del waiting[tensor, dimension]
            progressing = True
            if not has_named_extent(extent):
                found[name] = extent
    return found


def extents_in_sizes(program: Program) -> dict[Expression, Expression]:
    """What each ``T.0`` in the shapes of a program is as an expression of its sizes, where isl finds one.

    isl finds it for sizes from 1 on; where it is another one without elements, it is left out.
    """
    sizes = tuple((name, _GREATEST) for name in program.sizes)
    others = {name for statement in program.statements for name in _extents_in(statement)}
    found = {name: extent for name, extent in named_extents(program, {}, sizes).items() if name not in others}
    found = {name: e for name, e in found.items() if not any(map(_is_great, walk(e)))}  # several pieces
    for empty in program.sizes if found else ():
        for beside in _SAMPLES:
            values: dict[Expression, Expression] = {
                SizeReference(name): Literal(0 if name == empty else beside, INDEX_TYPE) for name in program.sizes
            }
            numbers = named_extents(program, values)
            found = {name: e for name, e in found.items() if substitute(e, values) == numbers.get(name)}
    return found


def _is_great(part: Expression) -> bool:
    return isinstance(part, Literal) and abs(part.value) >= _GREATEST


# Sizes that are not given count up to here, and those beside an empty one are these.
_GREATEST: Final = 2**31 - 1
_SAMPLES: Final = (0, 1, 2, 3, 7)


def _is_empty(statement: Statement, names: Collection[str]) -> bool:
    """Whether one of these iterators has no value: a size of 0 may have folded it out of the subscript."""
    return any(
        isinstance(i.begin, Literal) and isinstance(i.end, Literal) and i.end.value <= i.begin.value
        for i in statement.iterators
        if i.name in names
    )


def _extents_in(statement: Statement) -> set[SizeReference]:
    """The ``T.0`` on which the instances of a statement, or what it writes, depend."""
    bounds = (bound for iterator in statement.iterators for bound in (iterator.begin, iterator.end))
    leaves = (e for x in (*statement.subscripts, *bounds, *statement.conditions) for e in walk(x))
    return {e for e in leaves if isinstance(e, SizeReference) and named_extent(e) is not None}


def _hull(statements: Sequence[Statement], dimension: int, names: Iterable[str], sizes: Sizes) -> Expression:
    """The greatest extent that the statements write."""
    atoms = Atoms(names)
    extents: list[Polynomial] = [constant(0)]
    open_ones: list[Writing] = []
    for statement in statements:
        if scatters(statement.subscripts[dimension]):
            continue
        written, gives = chosen_by(statement.subscripts), gives_elements(statement)
        subscript, ranges = statement.subscripts[dimension], intervals_of(statement, atoms)
        writing = Writing(statement.target, dimension, subscript, written, ranges, statement.conditions, gives)
        extent = written_extent(writing, atoms)
        if sizes and has_named_extent(atoms.expression(extent)):
            open_ones.append(writing)
        extents.append(extent)
    found = open_extent(open_ones, sizes, atoms) if open_ones else None
    if found is not None:
        extents = [e for e in extents if not has_named_extent(atoms.expression(e))] + [atoms.polynomial(found)]
    return atoms.expression(atoms.greatest(extents))
