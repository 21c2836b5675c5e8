"""Below the members of bands: which pairs these leave together, and which functions have one value left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Final, TypeAlias

import islpy as isl

from tc.base.remembered import Remembered
from tc.language.isl.pieces import functions_of
from tc.polyhedral.ir.scop import ScopStatement
from tc.polyhedral.ir.tree import Member
from tc.polyhedral.schedule.dependences import Dependences, Ends, agreeing_on
from tc.polyhedral.schedule.hulls import Hull, Number, Spans, equations_of, hull_of, is_combination

# The coefficients of the iterators of each statement.
Rows: TypeAlias = Mapping[str, Items[Number]]


class Instances:
    """The domain of a statement, and what was found of it.

    ``moving``: the iterators that have more than one value.  ``is_plain``: whether nothing else relates iterators.
    """

    def __init__(self, statement: ScopStatement) -> None:
        self.domain: Final = statement.domain
        self.equations: Final = equations_of(statement.domain)
        self.is_plain: Final = all(sum(map(bool, row)) == 1 for row in self.equations.values())
        width = statement.domain.dim(isl.dim_type.set)
        related = {n for row in self.equations.values() for n in range(width) if row[n]}
        self.moving: Final = tuple(n for n in range(width) if n not in related or not self.is_plain)
        self._alone: Final[dict[int, bool]] = {}

    def moves_alone(self, position: int) -> bool:
        """Whether an iterator has two values where all others have one."""
        if position not in self._alone:
            domain = self.domain.reset_tuple_id()  # a set of its own: isl leaves out what it finds redundant in others
            further = isl.MultiAff.identity_on_domain_space(domain.get_space())
            further = further.set_aff(
                position, further.get_at(position).add_constant_val(isl.Val.one(domain.get_ctx()))
            )
            next_ones = domain.apply(isl.Map.from_multi_aff(further))
            self._alone[position] = not next_ones.intersect(domain).is_empty()
        return self._alone[position]


class Prefix:
    """Below members of bands, outermost first.

    ``functions``: of the members.  ``dependences``: the pairs that agree on all of them.
    """

    def __init__(
        self,
        dependences: Dependences,
        instances: Mapping[str, Instances],
        functions: tuple[isl.UnionPwAff, ...] = (),
        rows: Remembered[Rows] | None = None,
        spans: Spans | None = None,
    ) -> None:
        self.own: Final[dict[str, tuple[Member, ...]]] = {}
        self.shared: Final[dict[tuple[str, ...], tuple[Member, ...]]] = {}
        self._dependences: Final = dependences
        self._instances: Final = instances
        self._functions: Final = functions
        self._hulls: Final[dict[Ends, Hull | None]] = {}
        self._rows: Final = Remembered[Rows]() if rows is None else rows
        self._spans: Final[Spans] = {} if spans is None else spans
        self._together: Final[dict[str, isl.UnionMap]] = {}

    def below(self, members: Items[Member], names: Items[str]) -> Prefix:
        """Of some statements, below further members."""
        further = tuple(member.function for member in members)
        left = self._dependences.below(further, names)
        return Prefix(left, self._instances, (*self._functions, *further), self._rows, self._spans)

    def waits(self, first: Items[str], second: Items[str]) -> bool:
        """Whether an instance of the second ones must come after one of the first."""
        return any((a, b) in self._dependences.order for a in first for b in second)

    def waiting(self, names: Items[str]) -> Iterator[Ends]:
        """All that wait among these, each behind what it waits for."""
        return (ends for ends in self._dependences.order if ends[0] in names and ends[1] in names)

    def goes_in_steps(self, name: str) -> bool:
        """Whether a statement waits for itself from step to step."""
        return (name, name) in self._dependences.steps

    def hulls(self, names: Items[str]) -> list[Hull]:
        """Of all pairs among these that must not run at the same time."""
        ends = [(a, b) for a in names for b in names if (a, b) in self._dependences.order]
        found = (self._hull(own) for own in (*ends, *((name, name) for name in names)))
        return [hull for hull in found if hull is not None]

    def own_hull(self, name: str) -> Hull | None:
        """Of the pairs within one statement."""
        return self._hull((name, name))

    def _hull(self, ends: Ends) -> Hull | None:
        if ends not in self._hulls:
            pairs = self._dependences.conflicts(ends)
            self._hulls[ends] = None if pairs is None else self.hull_of(pairs)
        return self._hulls[ends]

    def hull_of(self, pairs: isl.Map) -> Hull | None:
        """The hull of any pairs of two statements; None where there are none."""
        return hull_of(pairs, self._spans)

    def conflicts(self, names: Items[str]) -> isl.UnionMap:
        """The affine hulls of the pairs among these that must not run at the same time.

        isl gets equations in place of constraints with divisions, for which it may search minutes for coefficients.
        """
        found = isl.UnionMap.empty(self._instances[names[0]].domain.get_space().params())
        every = (self._dependences.conflicts((a, b)) for a in names for b in names)
        for pairs in (own for own in every if own is not None):
            found = found.union(isl.UnionMap.from_map(isl.Map.from_basic_map(pairs.affine_hull())))
        return found

    def determines(self, function: isl.UnionPwAff, name: str) -> bool:
        """Whether the members leave the function only one value on the instances of a statement."""
        instances = self._instances[name]
        row, *rows = (self._rows_of(own).get(name) for own in (function, *self._functions))
        if row is None or None in rows:
            return self._is_one_value(function, name)
        known = [*(own for own in rows if own is not None), *instances.equations.values()]
        if is_combination(row, known):
            return True
        alone = (n for n, factor in enumerate(row) if factor and not any(own[n] for own in known))
        return not any(map(instances.moves_alone, alone)) and self._is_one_value(function, name)

    def _rows_of(self, function: isl.UnionPwAff) -> Rows:
        return self._rows.of((function,), lambda: _rows_of(function))

    def _is_one_value(self, function: isl.UnionPwAff, name: str) -> bool:
        """As ``determines``: what isl says of all pairs of instances."""
        if name not in self._together:
            domain = isl.UnionSet.from_set(self._instances[name].domain)
            self._together[name] = agreeing_on(isl.UnionMap.from_domain_and_range(domain, domain), self._functions)
        pairs = self._together[name]
        return bool(pairs.is_subset(agreeing_on(pairs, (function,))))


def _rows_of(function: isl.UnionPwAff) -> Rows:
    """The coefficients of iterators, by statement, where the function is a plain affine one."""
    found: dict[str, list[Number]] = {}
    for piece in functions_of(function):
        if not piece.isa_aff():
            continue
        plain = piece.as_aff()
        if plain.dim(isl.dim_type.div):
            continue
        count = plain.dim(isl.dim_type.in_)
        values = (plain.get_coefficient_val(isl.dim_type.in_, n) for n in range(count))
        found[str(plain.get_space().domain().get_tuple_name(isl.dim_type.set))] = [
            value.to_python() for value in values
        ]
    return found
