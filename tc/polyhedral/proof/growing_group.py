"""The statements that stand for a reduction whose terms grow, and the relations that proofs of them compare."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass

import islpy as isl

from tc.base.types import ScalarType, computation_type
from tc.language.isl.affine import Frame, affine_function, frame_of, iteration_domain
from tc.language.program.program import (
    Cast,
    Expression,
    IteratorReference,
    Program,
    Role,
    Statement,
    in_terms_of,
    iterators_in,
    reads_in,
    touches,
)
from tc.language.program.specialization import Sizes, Specialization
from tc.language.program.terms import float32_term
from tc.language.program.written_elements import written_iterators
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation


@dataclass(frozen=True)
class GrowingGroup:
    """``group``: the statements of the program ``after`` that stand for ``statement``, which grows along ``iterator``.

    All relations are without tuple names but those of instances.
    """

    before: Specialization
    after: Program
    context: isl.Context
    statement: Statement
    iterator: str
    group: tuple[Statement, ...]

    @property
    def sizes(self) -> Sizes:
        """Those that are open."""
        return self.before.sizes

    @property
    def elements(self) -> tuple[str, ...]:
        """The iterators that choose elements."""
        return tuple(iterator.name for iterator in written_iterators(self.statement))

    @property
    def term_names(self) -> tuple[str, ...]:
        """The iterators that tell terms apart: all but the one along which they grow."""
        return tuple(iterator.name for iterator in self.statement.iterators if iterator.name != self.iterator)

    # --- what the statements do

    def is_independent(self) -> bool:
        """Whether a term is the same for all elements, and no sum of what the statement itself writes."""
        statement = self.statement
        steps = {iterator.name for iterator in statement.sequence}
        return (
            statement.reduction is not None
            and self.iterator in set(self.elements) - steps
            and self.iterator not in iterators_in((statement.value,))
            and all(read.tensor != statement.target for read in reads_in(statement.value))
        )

    def is_own(self, name: str) -> bool:
        """Whether nothing else touches a tensor, and its type holds what the program computes with."""
        found = [tensor for tensor in self.after.tensors if tensor.name == name]
        if len(found) != 1 or any(tensor.name == name for tensor in self.before.program.tensors):
            return False
        computed = computation_type(self.before.layouts[self.statement.target].type)
        wider = ScalarType.FLOAT64 if computed.is_floating else computed
        return (
            found[0].role is Role.TEMPORARY
            and found[0].type in (computed, wider)
            and all(not touches(own, name) or own in self.group for own in self.after.statements)
        )

    def term(self, values: Mapping[str, Expression], carried: ScalarType) -> Expression:
        """A term of the program where iterators have these values, in the type in which it is added up."""
        value = in_terms_of(self.statement.value, values)
        if self.statement.value.type.is_half:
            value = float32_term(value)
        return value if value.type is carried else Cast(value, carried)

    # --- where they do it

    def wanted(self) -> isl.Map | None:
        """``{ [element's iterators] -> [term] }`` of the program."""
        return self.through(self.statement, self.elements, self.term_names, {}, {})

    def given(self, statement: Statement) -> isl.Map | None:
        """``{ [written iterators] -> [element] }`` of all that a statement like the program's writes."""
        if statement.initialize:
            statement = initialization(statement)
        places = self.instances_to(statement, self.at(self.elements, {}))
        written = self.instances_to(statement, statement.subscripts)
        return None if places is None or written is None else places.reverse().apply_range(written)

    def is_once(self, places: isl.Map, terms: isl.Map) -> bool:
        """Whether no two instances combine the same term into the same place."""
        return bool(places.range_product(terms).is_injective())

    def at(self, names: Items[str], values: Mapping[str, Expression]) -> tuple[Expression, ...]:
        """The iterators called so, some of them by their values."""
        return tuple(values.get(name, IteratorReference(name)) for name in names)

    def through(
        self,
        statement: Statement,
        first: Items[str],
        second: Items[str],
        values: Mapping[str, Expression],
        others: Mapping[str, Expression],
    ) -> isl.Map | None:
        """``{ [first] -> [second] }`` over the instances of the statement."""
        left = self.instances_to(statement, self.at(first, values))
        right = self.instances_to(statement, self.at(second, others))
        return None if left is None or right is None else left.reverse().apply_range(right)

    def instances_to(self, statement: Statement, values: Items[Expression]) -> isl.Map | None:
        """``{ instance -> [values] }``."""
        frame: Frame = frame_of(statement, self.context, sizes=self.sizes)
        domain = iteration_domain(statement, frame)
        if domain is None:
            return None
        found = isl.Map.from_domain(domain)
        for value in values:
            function = affine_function(value, frame)
            if function is None:
                return None
            found = found.flat_range_product(isl.Map.from_pw_aff(function))
        return found.intersect_domain(domain)

    def different(self, reached: isl.Map, wanted: isl.Map) -> Counterexample | None:
        """A term that an element has and should not, or the other way round."""
        if reached.is_equal(wanted):
            return None
        for more, less, violation in ((wanted, reached, Violation.MISSING), (reached, wanted, Violation.FOREIGN)):
            found = more.subtract(less)
            if not found.is_empty():
                return Counterexample(violation, f"a term of {self.statement.name}: {_pair(found)}")
        return None


def _pair(terms: isl.Map) -> str:
    """An element and one of its terms."""
    element = terms.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out).wrap().flatten().sample_point()
    values = [int(element.get_coordinate_val(isl.dim_type.set, n).to_python()) for n in range(_width(terms))]
    count = terms.dim(isl.dim_type.in_)
    return f"{values[:count]} has {values[count:]}"


def _width(terms: isl.Map) -> int:
    return int(terms.dim(isl.dim_type.in_) + terms.dim(isl.dim_type.out))
