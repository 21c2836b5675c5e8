"""Proof of divisors that are taken out of sums: with each put back in its place, the program is the one before.

The sum's terms are products of one element of the weights and of numbers that do not depend on it, and all terms of an
element of the sum have the same divisor, which nothing writes once the weights are known: so the sum of the quotients
is the quotient of the sum, but for rounding.  There is a term for each element: no sum of nothing is divided.
"""

from __future__ import annotations

from dataclasses import replace

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    Binary,
    Cast,
    Expression,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    Role,
    Statement,
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.terms import widened_term
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.hoisted import FactoredOut


def find_wrong_factoring(before: Specialization, after: Specialization, done: FactoredOut) -> Counterexample | None:
    """The first difference, or None."""
    old = {own.name: own for own in before.program.statements}
    new = {own.name: own for own in after.program.statements}
    names = [own.name for own in after.program.statements]
    if not {done.weights, done.product} <= old.keys() or done.divided in old or done.tensor in before.layouts:
        return Counterexample(Violation.CHANGED, f"{done.product}: the statements are not those of the program")
    order = [own.name for own in before.program.statements]
    place = order.index(done.product) + 1
    if names != [*order[:place], done.divided, *order[place:]]:
        return Counterexample(Violation.REORDERED, f"{done.divided} is not behind {done.product}")
    weights, product, dividing = new[done.weights], new[done.product], new[done.divided]
    wrong = _wrong_sum(before, old[done.weights], old[done.product], weights, product, dividing, done)
    if wrong is not None:
        return wrong
    kept = tuple(
        old[own.name] if own.name in (done.weights, done.product) else own
        for own in after.program.statements
        if own.name != done.divided
    )
    tensors = tuple(own for own in after.program.tensors if own.name != done.tensor)
    layouts = {name: own for name, own in after.layouts.items() if name != done.tensor}
    same = replace(after.program, statements=kept, tensors=tensors) == before.program and layouts == before.layouts
    if not same or not _is_declared(before, after, product, done):
        return Counterexample(Violation.CHANGED, f"{done.product}: other statements or tensors")
    return None


def _is_declared(before: Specialization, after: Specialization, product: Statement, done: FactoredOut) -> bool:
    """Whether the sum goes to a temporary of its own, which has the elements of the program's and is not rounded."""
    tensor, shape = after.program.tensor(done.tensor), before.layouts[_target(before, done)].shape
    type = product.value.type
    plain = after.layouts[done.tensor] == Layout(type, shape, contiguous_strides(shape))
    wide = type in (ScalarType.FLOAT32, ScalarType.FLOAT64)
    return tensor.role is Role.TEMPORARY and tensor.type is type and wide and plain


def _target(before: Specialization, done: FactoredOut) -> str:
    return next(own.target for own in before.program.statements if own.name == done.product)


def _wrong_sum(
    before: Specialization,
    divided: Statement,
    old: Statement,
    weights: Statement,
    product: Statement,
    dividing: Statement,
    done: FactoredOut,
) -> Counterexample | None:
    wrong = Counterexample(Violation.CHANGED, f"what {done.product} and {done.divided} compute")
    if not _is_plain(divided) or not _is_plain(old) or divided.reduction is not None:
        return wrong
    if sum(own.target == divided.target for own in before.program.statements) != 1:
        return Counterexample(Violation.CHANGED, f"{divided.target} is written elsewhere")
    # The weights were what they are now, divided.
    quotient, undivided = _unrounded(divided.value), _unrounded(weights.value)
    if not isinstance(quotient, Binary) or quotient.operator is not BinaryOperator.DIVIDE or quotient.left != undivided:
        return wrong
    if replace(weights, value=divided.value) != divided or weights.value.type is not divided.value.type:
        return wrong
    divisor = quotient.right
    reads = [own for own in reads_in(old.value) if own.tensor == weights.target]
    others = [own for own in before.program.statements if own.name != old.name]
    if len(reads) != 1 or any(own.tensor == weights.target for other in others for own in _reads(other)):
        return Counterexample(Violation.CHANGED, f"{weights.target} is read elsewhere")
    if before.program.tensor(weights.target).role is not Role.TEMPORARY or not isinstance(divisor, Read):
        return wrong
    # The sum is linear in them, and is the program's but for where it goes.
    term = widened_term(old.value)
    if old.reduction is not Reduction.ADD or not old.initialize or not _is_linear(term, reads[0]):
        return wrong
    if replace(product, target=old.target, value=old.value) != old or product.value != term:
        return wrong
    # All terms of an element have one divisor, at the subscripts that the weights had it at.
    if not all(isinstance(own, IteratorReference) for own in reads[0].subscripts):
        return wrong
    places = dict(zip(weights.subscripts, reads[0].subscripts, strict=True))
    if iterators_in(divisor.subscripts) - iterators_in(weights.subscripts):
        return wrong
    moved = _moved(divisor, places)
    summed = Read(done.tensor, old.subscripts, product.value.type)
    expected: Expression = Binary(BinaryOperator.DIVIDE, summed, moved, product.value.type)
    value = dividing.value.operand if isinstance(dividing.value, Cast) else dividing.value
    if value != expected or iterators_in((moved,)) - iterators_in(old.subscripts):
        return wrong
    return _wrong_instances(before, old, dividing, divisor, weights, done)


def _wrong_instances(
    before: Specialization, old: Statement, dividing: Statement, divisor: Read, weights: Statement, done: FactoredOut
) -> Counterexample | None:
    """Whether every element of the sum is divided, once, by what the weights would have been divided by."""
    chosen = tuple(own for own in old.iterators if own.name in iterators_in(old.subscripts))
    same = (dividing.target, dividing.subscripts, dividing.iterators) == (old.target, old.subscripts, chosen)
    special = dividing.conditions or dividing.blocks or dividing.required or dividing.counts or old.blocks
    type = before.layouts[old.target].type
    if not same or dividing.reduction is not None or special or old.conditions or dividing.value.type is not type:
        return Counterexample(Violation.CHANGED, f"the instances of {done.divided}")
    order = [own.name for own in before.program.statements]
    late = before.program.statements[order.index(weights.name) :]
    if any(own.target == divisor.tensor for own in late) or old.target == divisor.tensor:
        return Counterexample(Violation.REORDERED, f"{divisor.tensor} is written behind {weights.name}")
    early = before.program.statements[: order.index(old.name)]
    if any(own.target == old.target for own in early) or any(own.tensor == old.target for own in _reads(old)):
        return Counterexample(Violation.REORDERED, f"{old.target} is written before {old.name}")
    return None


def _is_plain(statement: Statement) -> bool:
    """Whether it runs for a box of numbers, of which each element that it writes has some, at iterators that differ."""
    places, subscripts = {own.name for own in statement.iterators}, statement.subscripts
    names = [own.name for own in subscripts if isinstance(own, IteratorReference)]
    special = statement.conditions or statement.blocks or statement.required or statement.counts or statement.atomic
    for own in statement.iterators:
        if iterators_in((own.begin, own.end)) or any(reads_in(own.begin)) or any(reads_in(own.end)):
            return False
        numbers = isinstance(own.begin, Literal) and isinstance(own.end, Literal) and own.begin.value < own.end.value
        if own.name not in names and not numbers:
            return False
    return len(set(names)) == len(subscripts) and set(names) <= places and not special and statement.owned is None


def _reads(statement: Statement) -> tuple[Read, ...]:
    parts = (statement.value, *statement.subscripts, *statement.conditions, *statement.required)
    return tuple(read for part in parts for read in reads_in(part))


def _unrounded(value: Expression) -> Expression:
    return value.operand if isinstance(value, Cast) and value.type.is_half else value


def _is_linear(value: Expression, read: Read) -> bool:
    """Whether a value is what is read times something that does not depend on it."""
    if value == read:
        return True
    match value:
        case Cast(operand, type) if not type.is_half and type.is_floating and operand.type.is_floating:
            return _is_linear(operand, read)
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type.is_floating:
            one, other = (left, right) if read in reads_in(left) else (right, left)
            return _is_linear(one, read) and read not in reads_in(other)
        case _:
            return False


def _moved(expression: Expression, places: dict[Expression, Expression]) -> Expression:
    return places.get(expression) or rebuild(expression, lambda part: _moved(part, places))
