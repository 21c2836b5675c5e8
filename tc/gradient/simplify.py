"""Fewer statements for the same derivative: copies of what nothing replaces, and sums in several parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from tc.gradient.images import is_one_to_one, reaches_all
from tc.gradient.reads import read_by
from tc.gradient.terms import invariants_first, plus
from tc.language.algebra.extents import named_extent, rename_extent
from tc.language.algebra.rewriting import map_statement
from tc.language.program.program import (
    Expression,
    InRange,
    IteratorReference,
    Program,
    Read,
    Reduction,
    Role,
    SizeReference,
    Statement,
    in_terms_of,
    rebuild,
    walk,
)
from tc.language.program.written_elements import is_scatter


def simplified(program: Program, adjoints: Collection[str]) -> Program:
    """The program without copies that hold what is still there, and with parts of a sum in one statement.

    Results that nothing reads come last: what stands between others keeps these from sharing loops.  ``adjoints``: the
    tensors whose values are products and sums that may be associated in another way.
    """
    statements = _in_one_statement(program, _results_last(program, _without_copies(program, list(program.statements))))
    # Values of the forward keep their bits: some are compared.
    statements = [replace(s, value=invariants_first(s.value)) if s.target in adjoints else s for s in statements]
    written = {statement.target for statement in statements}
    tensors = tuple(t for t in program.tensors if t.role is Role.INPUT or t.name in written)
    return replace(program, tensors=tensors, statements=tuple(statements))


def _without_copies(program: Program, statements: list[Statement]) -> list[Statement]:
    position = 0
    while position < len(statements):
        copy, later = statements[position], statements[position + 1 :]
        source = _copied(copy, program)
        if source is None or not _may_be_read(copy, source, later, program):
            position += 1
            continue
        change, measured = _reading(copy, source), _is_measured(program, copy.target)
        statements[position:] = [change(own) if measured or copy.target in read_by(own) else own for own in later]
    return statements


def _may_be_read(copy: Statement, source: Read, later: Sequence[Statement], program: Program) -> bool:
    """Whether what is copied may be read in the place of the copy."""
    changes = any(statement.target in (source.tensor, copy.target) for statement in later)
    return not changes and (source.subscripts == copy.subscripts or not _is_measured(program, copy.target))


def _is_measured(program: Program, tensor: str) -> bool:
    """Whether extents of a tensor are asked for, as in ``T.0``."""
    parts = [extent for own in program.tensors for extent in own.shape]
    for s in program.statements:
        ends = (end for iterator in s.iterators for end in (iterator.begin, iterator.end))
        parts += [s.value, *s.subscripts, *s.conditions, *ends]
    sizes = (own for part in parts for own in walk(part) if isinstance(own, SizeReference))
    return any((found := named_extent(own)) is not None and found[0] == tensor for own in sizes)


def _results_last(program: Program, statements: Sequence[Statement]) -> list[Statement]:
    read = {name for statement in statements for name in read_by(statement)}
    stuck = {statement.target for statement in statements if statement.blocks}
    for position, statement in enumerate(statements):
        written = {later.target for later in statements[position + 1 :]} - {statement.target}
        if read_by(statement) & written:
            stuck.add(statement.target)
    last = {name for name in program.results if name not in read | stuck}
    others = [statement for statement in statements if statement.target not in last]
    places = {statement.target: place for place, statement in enumerate(others)}

    def place(result: str) -> int:
        """How far back what it is computed from lies: the nearest goes first."""
        own = {name for statement in statements if statement.target == result for name in read_by(statement)}
        return -max((places.get(name, -1) for name in own), default=-1)

    ordered = sorted((name for name in dict.fromkeys(s.target for s in statements) if name in last), key=place)
    return [*others, *(s for name in ordered for s in statements if s.target == name)]


def _reading(copy: Statement, source: Read) -> Callable[[Statement], Statement]:
    """Reads of a copy as reads of what it is one of."""
    iterators = [own.name for own in copy.subscripts if isinstance(own, IteratorReference)]

    def change(expression: Expression) -> Expression:
        found = rebuild(expression, change)
        match found:
            case Read(tensor, subscripts) if tensor == copy.target:
                values = dict(zip(iterators, subscripts, strict=True))
                return replace(source, subscripts=tuple(in_terms_of(own, values) for own in source.subscripts))
            case SizeReference():
                return rename_extent(found, {copy.target: source.tensor}) or found
            case _:
                return found

    return lambda statement: map_statement(statement, change)


def _copied(statement: Statement, program: Program) -> Read | None:
    """The elements of which a statement makes a copy that is a temporary, if it does nothing else.

    Each element may become several: a row of copies.
    """
    target, value = program.tensor(statement.target), statement.value
    if not isinstance(value, Read) or statement.reduction is not None or target.role is not Role.TEMPORARY:
        return None
    plain = {own.name for own in statement.subscripts if isinstance(own, IteratorReference)}
    names = [own.name for own in value.subscripts if isinstance(own, IteratorReference)]
    moved = len(names) == len(value.subscripts) == len(set(names)) and set(names) <= plain
    same = moved and program.tensor(value.tensor).type is target.type and not statement.blocks
    if not same or len(plain) != len(statement.subscripts) or statement.conditions:
        return None
    return value if reaches_all(statement, target, program) else None


def _in_one_statement(program: Program, statements: Sequence[Statement]) -> list[Statement]:
    """Sums to which statements add side by side, without a read or write between, in the last of them."""
    found: list[Statement] = []
    reads: list[set[str]] = []
    for statement in statements:
        own = read_by(statement)
        place = _last_written(statement.target, found, reads) if statement.reduction is Reduction.ADD else None
        first = None if place is None else found[place]
        if (
            first is not None
            and place is not None
            and not program.tensor(statement.target).type.is_half  # which would be rounded less often
            and statement.target not in reads[place] | own
            and _adds_to(first, statement)
            and not any(between.target in reads[place] for between in found[place + 1 :])
        ):
            del found[place]
            own |= reads.pop(place)
            found.append(replace(first, value=plus(first.value, statement.value), origin=statement.origin))
        else:
            found.append(statement)
        reads.append(own)
    return found


def _last_written(tensor: str, statements: Sequence[Statement], reads: Sequence[set[str]]) -> int | None:
    """Which statement writes a tensor last, if none behind it reads it."""
    for place in reversed(range(len(statements))):
        if statements[place].target == tensor:
            return place
        if tensor in reads[place]:
            return None
    return None


def _adds_to(first: Statement, statement: Statement) -> bool:
    """Whether a statement adds, once, to each element that the first one gives or adds to."""
    plain = all(isinstance(own, IteratorReference) for own in statement.subscripts)
    return (
        plain
        and statement.reduction is Reduction.ADD
        and first.reduction in (None, Reduction.ADD)
        and first.subscripts == statement.subscripts
        and set(first.iterators) == set(statement.iterators)
        and first.conditions == statement.conditions
        and is_one_to_one(statement)
        and not is_scatter(statement)
        and not any(isinstance(part, InRange) for own in (first, statement) for part in walk(own.value))
    )
