"""What to write where a read leaves its tensor: a ``where`` for reductions, a guard for everything else.

A reduction leaves out what lies outside, so that the missing elements add nothing: this is padding, and what the
gradient of a convolution asks for.  Its iterators then need ranges of their own, because a condition of a ``where``
grants what it says and bounds nothing.  An assignment must give every element a value, so its read is guarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.extremes import Extremes, Interval
from tc.language.algebra.polynomial import Atoms, Polynomial, constant
from tc.language.isl.affine import affine_function, frame_of, iteration_domain
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import isl_context
from tc.language.program.guards import guarded_reads
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    Literal,
    Program,
    Read,
    Reduction,
    SizeReference,
    Statement,
    iterators_in,
)
from tc.language.program.written_elements import written_iterators
from tc.language.prove.leaving import gathers, intervals_of, negative_remainder
from tc.language.prove.written import reads_target
from tc.language.text.expression_text import expression_text

_GENERAL = "narrow the ranges with a `where`, or guard the read with a condition"


@frozen
class _Subscript:
    """A subscript that may be outside: below 0, or at or above the extent."""

    expression: Expression
    extent: Expression
    below: bool
    above: bool


def remedy(statement: Statement, reads: Sequence[Read], program: Program) -> str:
    """What keeps reads of a statement inside, in the words of its text, whatever the sizes are."""
    if isinstance(statement.origin, DerivedOrigin):
        return _GENERAL  # the text is that of another definition
    if any(read in statement.required for read in reads):
        return "`exists` asks for it: pass a larger tensor, or leave that clause out"
    size = named_size(e for read in reads for e in read.subscripts)
    if size is not None:
        return size
    from_end = next(filter(None, (_counted_from_the_end(read, program) for read in reads)), None)
    if from_end is not None:
        return from_end
    doubtful = {read: _doubtful(statement, read, program) for read in reads}
    found = [subscript for subscripts in doubtful.values() for subscript in subscripts]
    if not found:
        return _GENERAL
    if _may_leave_out(statement, found):
        atoms = Atoms(program.sizes, (scalar.name for scalar in program.scalars))
        inside = [f"{expression_text(s.expression)} in 0:{expression_text(s.extent)}" for s in found]
        ranges = _ranges(statement, found, Extremes(atoms, intervals_of(statement, atoms)))
        return f"what lies outside may add nothing: `where {', '.join(dict.fromkeys([*ranges, *inside]))}`"
    other = 1 if statement.reduction is Reduction.MULTIPLY else 0
    guards = [_guarded(read, subscripts, other) for read, subscripts in doubtful.items() if subscripts]
    negative = next(filter(None, (negative_remainder(s.expression) for s in found if s.below)), "")
    return f"guard the read: {', '.join(guards)}{negative and '; '}{negative}"


def _counted_from_the_end(read: Read, program: Program) -> str | None:
    """The hint for a subscript like -1, which means the last element in Python."""
    subscripts: list[Expression] = []
    for subscript, extent in zip(read.subscripts, program.tensor(read.tensor).shape, strict=True):
        value = Atoms().polynomial(subscript).constant
        is_negative = value is not None and value < 0
        last = Literal(-value, INDEX_TYPE) if value is not None else subscript
        subscripts.append(Binary(BinaryOperator.SUBTRACT, extent, last, INDEX_TYPE) if is_negative else subscript)
    if subscripts == list(read.subscripts):
        return None
    meant = expression_text(replace(read, subscripts=tuple(subscripts)))
    return f"subscripts count from 0, and not from the end: write `{meant}`"


def _may_leave_out(statement: Statement, subscripts: Sequence[_Subscript]) -> bool:
    """Whether instances may be left out, for each element is initialized for other ones of the reduction."""
    if statement.reduction is None or reads_target(statement):
        return False
    written = {iterator.name for iterator in written_iterators(statement)}
    return not statement.initialize or not any(iterators_in([s.expression]) <= written for s in subscripts)


def named_size(subscripts: Iterable[Expression]) -> str | None:
    """The hint for a subscript that is a size by itself, which was meant to be an index."""
    found = next((e for e in subscripts if isinstance(e, SizeReference)), None)
    if found is None:
        return None
    return f"`{found.name}` is a size, one number: give the index another name, for example `{_other(found.name)}`"


def _other(name: str) -> str:
    return name.lower() if name.lower() != name else f"{name}_index"


def _doubtful(statement: Statement, read: Read, program: Program) -> list[_Subscript]:
    """The subscripts that are outside for some instance and some sizes."""
    found: list[_Subscript] = []
    with isl_context() as context:
        names = integer_parameters(program)
        frame = frame_of(statement, context, names)
        domain = iteration_domain(statement, frame)
        if domain is not None:
            domain = domain.intersect_params(possible_parameters(program, context, names, 0))
        for subscript, extent in zip(read.subscripts, program.tensor(read.tensor).shape, strict=True):
            if gathers(subscript):
                continue
            position, end = affine_function(subscript, frame), affine_function(extent, frame)
            below = above = True
            if domain is not None and position is not None:
                below = not domain.intersect(position.lt_set(frame.constant(0))).is_empty()
                above = end is None or not domain.intersect(position.ge_set(end)).is_empty()
            if below or above:
                found.append(_Subscript(subscript, extent, below, above))
    return found


def _guarded(read: Read, subscripts: Sequence[_Subscript], other: int) -> str:
    conditions: list[str] = []
    for subscript in subscripts:
        text = expression_text(subscript.expression)
        conditions += [f"{text} >= 0"] if subscript.below else []
        conditions += [f"{text} < {expression_text(subscript.extent)}"] if subscript.above else []
    return f"`({' && '.join(conditions)} ? {expression_text(read)} : {other})`"


# --- the ranges of a reduction whose reads are left out where they are outside ---------------------------------------


def _ranges(statement: Statement, subscripts: Sequence[_Subscript], extremes: Extremes) -> Iterator[str]:
    """The ranges of iterators that nothing else bounds."""
    conditional = {s.expression for s in subscripts}
    bounding = [
        subscript
        for guarded in (*guarded_reads(statement.value), *(g for r in statement.required for g in guarded_reads(r)))
        for subscript in guarded.read.subscripts
        if subscript not in conditional
    ]
    bounded = iterators_in(bounding)
    written = {iterator.name for iterator in written_iterators(statement)}
    for iterator in statement.iterators:
        if iterator.name in iterators_in(conditional) and iterator.name not in bounded:
            end = iterator.end
            if iterator.name in written:
                end = _widened(iterator.name, subscripts, extremes) or end
            yield f"{iterator.name} in {expression_text(iterator.begin)}:{expression_text(end)}"


def _widened(name: str, subscripts: Sequence[_Subscript], extremes: Extremes) -> Expression | None:
    """The end of a written iterator's range; None where the range does not come from the subscripts alone.

    With a positive factor, the range ends with the last element to which anything is added (a full convolution).  With
    a negative one, as in a correlation ``y(k) +=! a(i - k) * b(i)``, it ends where ``a`` no longer lies within the
    range of ``i``.
    """
    atoms = extremes.atoms
    others = {other: interval for other, interval in extremes.intervals.items() if other != name}
    rest_of = Extremes(atoms, others)
    inferred: list[Polynomial] = []
    widened: list[Polynomial] = []
    for subscript in subscripts:
        position, extent = atoms.polynomial(subscript.expression), atoms.polynomial(subscript.extent)
        factor = position.coefficient(atoms.iterator(name))
        if factor is None or factor.constant == 0:
            continue
        rest = position.rest(atoms.iterator(name))
        least, greatest = rest_of.least(rest), rest_of.greatest(rest)
        if factor.constant is None or least is None or greatest is None or atoms.variables(least + greatest):
            return None
        if factor.constant > 0:
            inferred.append(_end(extent - 1 - greatest, factor.constant, atoms))
            widened.append(_end(extent - 1 - least, factor.constant, atoms))
        else:
            inferred.append(_end(least, -factor.constant, atoms))
            widened.append(atoms.greatest([inferred[-1], _end(greatest - extent + 1, -factor.constant, atoms)]))
    if not inferred or extremes.intervals[name] != Interval(constant(0), atoms.clamped(atoms.least(inferred))):
        return None
    return atoms.expression(atoms.clamped(atoms.least(widened)))


def _end(limit: Polynomial, factor: int, atoms: Atoms) -> Polynomial:
    """One past the greatest iterator for which ``factor * iterator <= limit``."""
    return limit + 1 if factor == 1 else atoms.quotient(limit + factor, constant(factor))
