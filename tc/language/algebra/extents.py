"""The extents that statements give what they write: one past the greatest subscript that an instance attains.

Where that is linear in the sizes, the definition says so.  Where it is not (``y(i % N)``), the extent has the name
that the language has for it, ``y.0``, and the sizes of a call give it its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.extremes import Extremes, Interval
from tc.language.algebra.inequalities import inequalities
from tc.language.algebra.polynomial import Atoms, Polynomial, constant
from tc.language.isl.affine import Frame, affine_condition, affine_function
from tc.language.isl.pieces import pieces_of
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.language.program.program import (
    Binary,
    Expression,
    IteratorReference,
    Read,
    ScalarReference,
    SizeReference,
    iterators_in,
    walk,
)

_LEAVES: Final = (SizeReference, ScalarReference)

# A tenth of a second of isl's work; the sizes of a call make what takes longer easy.
_MAX_OPERATIONS: Final = 1_000_000


def extent_name(tensor: str, dimension: int) -> SizeReference:
    """The name of an extent, ``T.0``."""
    return SizeReference(f"{tensor}.{dimension}")


def named_extent(size: SizeReference) -> tuple[str, int] | None:
    """The tensor and the dimension of ``T.0``; None for a size variable."""
    tensor, dot, dimension = size.name.rpartition(".")
    return (tensor, int(dimension)) if dot else None


def rename_extent(size: SizeReference, tensors: Mapping[str, str]) -> SizeReference | None:
    """``T.0`` with another name for the tensor; None for a size variable."""
    found = named_extent(size)
    return None if found is None else extent_name(tensors.get(found[0], found[0]), found[1])


@frozen
class Writing:
    """How a statement writes one dimension of its target.

    ``written``: the iterators of the left-hand side.  ``ranges``: of all iterators.  ``conditions``: of the ``where``.
    ``gives``: whether the statement gives elements, rather than updating those that there are.
    """

    target: str
    dimension: int
    subscript: Expression
    written: frozenset[str]
    ranges: Mapping[str, Interval]
    conditions: Sequence[Expression]
    gives: bool

    def related(self, atoms: Atoms) -> tuple[list[str], list[Expression]]:
        """The iterators and conditions on which the subscript depends: no other makes the dimension smaller."""
        narrowing = [c for c in self.conditions if iterators_in([c]) <= self.written]
        names = set(iterators_in([self.subscript]))
        before = -1
        while len(names) > before:
            before = len(names)
            bounds = [bound for name in names for bound in (self.ranges[name].begin, self.ranges[name].end)]
            names = names.union(*map(atoms.variables, bounds))
            names = names.union(*(found for c in narrowing if (found := iterators_in([c])) & names))
        return [name for name in self.ranges if name in names], [c for c in narrowing if iterators_in([c]) <= names]


def written_extent(writing: Writing, atoms: Atoms) -> Polynomial:
    """One past the greatest subscript."""
    if isinstance(writing.subscript, IteratorReference) and not writing.conditions:
        end = writing.ranges[writing.subscript.name].end
        if not atoms.variables(end):
            return atoms.least([end])
    subscript = atoms.polynomial(writing.subscript)
    greatest = Extremes(atoms, writing.ranges).greatest(subscript)
    facts = (fact for condition in writing.conditions for fact in inequalities(condition, True, atoms))
    # A condition of the `where` may bound the subscript itself, `r - k in 0:M`, or a part of it, as `l in 0:M` does in
    # `3 * l + 2`: what is not negative may be added as often as the part occurs.
    factors = {1, *(factor for monomial, factor in subscript.terms.items() if monomial and factor > 0)}
    totals = (fact * factor + subscript for fact in facts for factor in sorted(factors))
    limits = [total for total in totals if not atoms.variables(total)]
    limits += [greatest] if greatest is not None and not atoms.variables(greatest) else []
    bound = atoms.least([limit + 1 for limit in limits]) if limits else None
    names, conditions = writing.related(atoms)
    is_linear = bound is not None and _is_linear(subscript, atoms)
    exact = None
    if is_linear and not (conditions and writing.gives):
        exact = bound
    elif not conditions:
        exact = _quotient_extent(subscript, writing.ranges, atoms)
    if exact is None:
        exact = _attained(writing, names, conditions, _Bound(bound, is_linear), atoms)
    return exact or atoms.variable(extent_name(writing.target, writing.dimension))


@frozen
class _Bound:
    """What the ends of ranges say of an extent.

    ``holds``: whether to believe it where isl finds nothing else, and for sizes that leave no instance.
    """

    extent: Polynomial | None
    holds: bool


def _is_linear(subscript: Polynomial, atoms: Atoms) -> bool:
    """Whether iterators occur by themselves only: bounds of ranges are then attained."""
    return all(isinstance(atoms[a], IteratorReference) or not atoms.iterators(a) for a in subscript.atoms)


def _quotient_extent(subscript: Polynomial, ranges: Mapping[str, Interval], atoms: Atoms) -> Polynomial | None:
    """Of a subscript like ``i / 4 + 1``: a quotient rises with its dividend, so the last one is the greatest.

    ``(last + 4) / 4`` is one past it, and 0 for an empty range that begins at 0, where truncation would make it 1.
    """
    compound = [a for a in subscript.atoms if atoms.iterators(a)]
    if len(compound) != 1 or subscript.coefficient(compound[0]) != constant(1):
        return None
    quotient = atoms[compound[0]]
    if not isinstance(quotient, Binary) or quotient.operator is not BinaryOperator.DIVIDE:
        return None
    dividend, divisor = atoms.polynomial(quotient.left), atoms.polynomial(quotient.right)
    last = Extremes(atoms, ranges).greatest(dividend)
    if last is None or atoms.variables(divisor) or not atoms.is_nonnegative(divisor - 1):  # quotients by 0 are 0
        return None
    if not _is_linear(dividend, atoms) or not atoms.is_nonnegative(dividend):
        return None
    if any(ranges[name].begin.constant != 0 for name in iterators_in([quotient.left])):
        return None
    return atoms.quotient(last + divisor, divisor) + subscript.rest(compound[0])


def _attained(
    writing: Writing, names: Sequence[str], conditions: Sequence[Expression], bound: _Bound, atoms: Atoms
) -> Polynomial | None:
    """The bound, if isl finds that it is attained, or what isl finds, if that is linear in the sizes.

    None for anything else, and for what is not affine.
    """
    ranges = {name: writing.ranges[name] for name in names}
    expressions = [writing.subscript, *conditions]
    expressions += [atoms.expression(end) for interval in ranges.values() for end in (interval.begin, interval.end)]
    leaves = tuple(dict.fromkeys(e for x in expressions for e in walk(x) if isinstance(e, _LEAVES)))
    try:
        with isl_context(_MAX_OPERATIONS) as context:
            frame = Frame(context, "", tuple(names), tuple(leaf.name for leaf in leaves))
            image = image_of(writing.subscript, ranges, conditions, frame, atoms)
            if image is None:
                # Numbers for its sizes make a condition affine, but not one that reads a tensor.
                decided = leaves and not any(isinstance(e, Read) for c in conditions for e in walk(c))
                return bound.extent if bound.holds and not decided else None
            return _greatest(image, bound, leaves, frame, atoms)
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return None


def image_of(
    subscript: Expression,
    ranges: Mapping[str, Interval],
    conditions: Sequence[Expression],
    frame: Frame,
    atoms: Atoms,
) -> isl.Set | None:
    """The values of the subscript; None where something is not affine."""
    domain = frame.universe()
    for name, interval in ranges.items():
        begin, end = (affine_function(atoms.expression(e), frame) for e in (interval.begin, interval.end))
        if begin is None or end is None:
            return None
        domain = domain.intersect(begin.le_set(frame.require(name))).intersect(frame.require(name).lt_set(end))
    for condition in conditions:
        inside = affine_condition(condition, frame)
        if inside is None:
            return None
        domain = domain.intersect(inside)
    position = affine_function(subscript, frame)
    return None if position is None else isl.Map.from_pw_aff(position).intersect_domain(domain).range()


def _greatest(
    image: isl.Set,
    bound: _Bound,
    leaves: Sequence[SizeReference | ScalarReference],
    frame: Frame,
    atoms: Atoms,
) -> Polynomial | None:
    outer = Frame(frame.context, "", (), frame.parameters)
    possible = outer.universe()
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, SizeReference):
            possible = possible.lower_bound_val(isl.dim_type.param, position, isl.Val.zero(frame.context))
    image = image.intersect_params(possible.params())
    if image.is_empty():
        return constant(0)
    attained = image.dim_max(0).add_constant_val(isl.Val.one(frame.context))
    nothing = possible.params().subtract(image.params())

    def fits(extent: Polynomial, *, holds: bool) -> bool:
        end = affine_function(atoms.expression(extent), outer)
        if end is None:
            return False
        end = end.project_domain_on_params()
        is_empty = end.pos_set().complement()
        return bool(image.params().is_subset(attained.eq_set(end)) and (holds or nothing.is_subset(is_empty)))

    if bound.extent is not None and fits(bound.extent, holds=bound.holds):
        return bound.extent
    pieces = [function for _, function in pieces_of(attained)]
    if len(pieces) == 1 and pieces[0].dim(isl.dim_type.div) == 0:
        extent = _polynomial(pieces[0], leaves, atoms)
        return extent if fits(extent, holds=False) else None
    return None


def _polynomial(function: isl.Aff, leaves: Sequence[SizeReference | ScalarReference], atoms: Atoms) -> Polynomial:
    result = constant(function.get_constant_val().to_python())
    for position, leaf in enumerate(leaves):
        factor = function.get_coefficient_val(isl.dim_type.param, position).to_python()
        result = result + atoms.variable(leaf) * factor
    return result
