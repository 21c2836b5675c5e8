"""Proof of dot products of words: with these written out element by element, sums have the terms of the program.

``byte_dot`` of two words is the sum of the products of their bytes, the first's unsigned and the second's signed;
``short_dot`` of the products of two signed integers of 16 bits, modulo 2^32, which hold all bytes; ``pair_dot`` of the
products of two bfloat16 numbers, exact in float32 but where numbers or sums are subnormal, which the oracle has bounds
for.  Each word that is read is written once, before, from the elements of its steps; behind the last step these are 0.
So the dots are the products of the program, each of them once, where no bits are flipped.  A flipped bit makes a byte
128 more, or less; what that adds to a sum is 128 times the sum of the other operand's bytes, which it loses in the end.
"""

from __future__ import annotations

from dataclasses import replace

from tc.base.dots import Dot
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.affine_form import affine_form
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    Select,
    Statement,
    in_terms_of,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.terms import bfloat16_factors
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.dotted import FLIPPED, ONES, Dots, Word


def find_wrong_dots(before: Specialization, after: Specialization, made: Dots) -> Counterexample | None:
    """The first difference, or None."""
    old = next(own for own in before.program.statements if own.name == made.name)
    place = next(n for n, own in enumerate(before.program.statements) if own is old)
    count = len(after.program.statements) - len(before.program.statements) + 1
    parts = after.program.statements[place : place + count]
    kept = (*after.program.statements[:place], *after.program.statements[place + count :])
    added = {*dict(made.copies).values(), *filter(None, (made.sums,))}
    others = tuple(own for own in before.program.statements if own is not old)
    if kept != others or _touched(others, added) or not _same_declarations(before, after, added):
        return Counterexample(Violation.CHANGED, f"other statements or tensors than those of {made.name}")
    number = len(added) + (1 if made.sums is None else 2)
    if {own.target for own in parts} != {*added, old.target} or len(parts) != number:
        return Counterexample(Violation.CHANGED, f"the parts of {made.name}")
    products = _operands(old, made.dot, before.layouts[old.target].type)
    if products is None or old.blocks or old.conditions or old.reduction is not Reduction.ADD:
        return Counterexample(Violation.CHANGED, f"{made.name} is no sum of products that words hold")
    words = {copy: next(own for own in parts if own.target == copy) for copy in dict(made.copies).values()}
    ends = [own.end for own in old.iterators if own.name == made.iterator]
    for operand in (own for own in products if own.tensor in dict(made.copies)):
        along = [n for n, own in enumerate(operand.subscripts) if own == IteratorReference(made.iterator)]
        whole = [Literal(before.layouts[operand.tensor].shape[n], INDEX_TYPE) for n in along]
        if ends != whole:
            return Counterexample(Violation.CHANGED, f"{made.name} does not run over all steps of {operand.tensor}")
        wrong = _wrong_words(operand, words.get(dict(made.copies).get(operand.tensor, "")), before, after, made)
        if wrong is not None:
            return wrong
    dots, target = parts[-1 if made.sums is None else -2], before.layouts[old.target].type
    if not _dots_are_products(old, dots, target, products, made):
        return Counterexample(Violation.CHANGED, f"what the instances of {made.name} compute")
    if made.dot is not Dot.BYTES:
        plain = made.sums is None and made.flipped is None
        return None if plain else Counterexample(Violation.CHANGED, "flipped bits of numbers or integers")
    if made.sums is None:
        signs = sorted(read.type.value for read in products)
        known = signs == ["int8", "uint8"] and made.flipped is None
        return None if known else Counterexample(Violation.CHANGED, "the signs of the bytes")
    return _wrong_end(old, parts, products, after, made)


def _touched(statements: tuple[Statement, ...], tensors: set[str]) -> bool:
    def reads(own: Statement) -> set[str]:
        parts = (own.value, *own.subscripts, *own.conditions, *own.required)
        return {read.tensor for part in parts for read in reads_in(part)}

    return any(own.target in tensors or reads(own) & tensors for own in statements)


def _same_declarations(before: Specialization, after: Specialization, added: set[str]) -> bool:
    tensors = tuple(own for own in after.program.tensors if own.name not in added)
    layouts = {name: own for name, own in after.layouts.items() if name not in added}
    rest = replace(after.program, tensors=tensors, statements=before.program.statements)
    return rest == before.program and layouts == before.layouts and not added & set(before.layouts)


def _operands(statement: Statement, dot: Dot, target: ScalarType) -> tuple[Read, Read] | None:
    """The factors, whose sum is of int32, or of float32 and rounded to bfloat16 in the end, if at all."""
    if dot is Dot.PAIRS:
        factors = bfloat16_factors(statement.value)
        known = target in (ScalarType.FLOAT32, ScalarType.BFLOAT16) and factors is not None
        return factors if known and factors is not None and factors[0].tensor != factors[1].tensor else None
    match statement.value:
        case Binary(BinaryOperator.MULTIPLY, Cast(Read() as left, to), Cast(Read() as right, also), type):
            words = to is also is type is target is ScalarType.INT32
            bytes = {ScalarType.INT8, ScalarType.UINT8}
            held = bytes if dot is Dot.BYTES else {*bytes, ScalarType.INT16}
            small = {left.type, right.type} <= held
            return (left, right) if words and small and left.tensor != right.tensor else None
        case _:
            return None


def _wrong_words(
    operand: Read, writer: Statement | None, before: Specialization, after: Specialization, made: Dots
) -> Counterexample | None:
    """Whether each word holds the elements of its steps, in their order, and zeros behind the last one."""
    wrong = Counterexample(Violation.NOT_LOADED, f"the words of {operand.tensor}")
    if writer is None or writer.reduction is not None or writer.conditions or writer.blocks:
        return wrong
    if writer.owned is not None or writer.counts or writer.distinct or writer.required or writer.atomic:
        return wrong
    layout, held = before.layouts[operand.tensor], after.layouts[writer.target]
    along = [n for n, own in enumerate(operand.subscripts) if made.iterator in iterators_in((own,))]
    if len(along) != 1 or operand.subscripts[along[0]] != IteratorReference(made.iterator):
        return wrong
    steps = layout.shape[along[0]]
    count = made.word.steps
    shape = tuple(-(-steps // count) if n == along[0] else extent for n, extent in enumerate(layout.shape))
    places = tuple(IteratorReference(own.name) for own in writer.iterators)
    if not _runs_over(writer, shape) or writer.subscripts != places or not _lies_apart(held, shape):
        return wrong
    function = made.word.made_flipped if operand.tensor == made.flipped else made.word.made
    match writer.value:
        case Call(name, values, ScalarType.INT32) if name == function and len(values) == count:
            given = all(_is_element(own, n, operand, places, along[0], steps, made) for n, own in enumerate(values))
            return None if given else wrong
        case _:
            return wrong


def _runs_over(statement: Statement, shape: tuple[int, ...]) -> bool:
    """Whether the iterators are those of all elements of a shape."""
    ends = [(own.begin, own.end) for own in statement.iterators]
    return len(ends) == len(shape) and all(
        isinstance(begin, Literal) and isinstance(end, Literal) and (begin.value, end.value) == (0, extent)
        for (begin, end), extent in zip(ends, shape, strict=True)
    )


def _lies_apart(layout: Layout, shape: tuple[int, ...]) -> bool:
    plain = not layout.extents and layout.type is ScalarType.INT32
    return plain and layout.shape == shape and layout.strides == contiguous_strides(shape)


def _is_element(
    value: Expression,
    number: int,
    operand: Read,
    places: tuple[IteratorReference, ...],
    along: int,
    steps: int,
    made: Dots,
) -> bool:
    """Whether a value is the element of one step of a word, and stands for 0 behind the last step."""
    word = made.word
    zero = 0 if operand.tensor != made.flipped else (-FLIPPED if operand.type is ScalarType.INT8 else FLIPPED)
    match value:
        case Select(Binary(BinaryOperator.LESS, bound, Literal(end)), inside, Literal(otherwise), type):
            is_guard = _is_step(bound, places[along], number, word) and end == steps
            is_zero = otherwise == zero and type is word.term
            return is_guard and is_zero and _is_read(inside, number, operand, places, along, word)
        case _:
            return steps % word.steps == 0 and _is_read(value, number, operand, places, along, word)


def _is_read(
    value: Expression, number: int, operand: Read, places: tuple[Expression, ...], along: int, word: Word
) -> bool:
    match value:
        case Cast(Read(tensor, subscripts, type), to) if (tensor, type, to) == (
            operand.tensor,
            operand.type,
            word.term,
        ):
            return all(
                _is_step(own, place, number, word) if n == along else own == place
                for n, (own, place) in enumerate(zip(subscripts, places, strict=True))
            )
        case _:
            return False


def _is_step(value: Expression, place: Expression, number: int, word: Word) -> bool:
    form = affine_form(value)
    return form.constant == number and form.factors == {place: word.steps}


def _dots_are_products(
    old: Statement,
    new: Statement,
    target: ScalarType,
    products: tuple[Read, Read],
    made: Dots,
) -> bool:
    """Whether the instances are those of the program, with a word in the place of several steps."""
    (step,) = (own for own in old.iterators if own.name == made.iterator)
    copies, renamed = dict(made.copies), {made.iterator: IteratorReference(made.words)}
    value = new.value.operand if isinstance(new.value, Cast) else new.value
    given = value.arguments if isinstance(value, Call) else ()

    def word(own: Read, given: Expression) -> Expression | None:
        if own.tensor in copies:
            return Read(copies[own.tensor], tuple(in_terms_of(s, renamed) for s in own.subscripts), ScalarType.INT32)
        return given if _is_word_of(own, given, step, made) else None

    ordered = sorted(products, key=lambda read: (read.type is ScalarType.INT8) != (read.tensor == made.flipped))
    wanted = tuple(map(word, ordered, given))
    if len(given) != len(ordered) or None in wanted:
        return False
    if step.begin != Literal(0, INDEX_TYPE) or not isinstance(step.end, Literal):
        return False
    count = -(-int(step.end.value) // made.word.steps)
    words = replace(step, name=made.words, end=replace(step.end, value=count))
    iterators = tuple(words if own is step else own for own in old.iterators)
    dot = Call(made.word.dot, tuple(filter(None, wanted)), made.word.term)
    changed = replace(old, iterators=iterators, value=Cast(dot, target) if target.is_half else dot)
    used = iterators_in((*old.subscripts, *(own.begin for own in old.iterators), *(own.end for own in old.iterators)))
    return changed == new and made.iterator not in used and made.words not in {own.name for own in old.iterators}


def _is_word_of(operand: Read, word: Expression, step: IterationVariable, made: Dots) -> bool:
    """Whether a word is of the elements of its steps where these lie, all of which there are, with bits as they are."""
    place, count = IteratorReference(made.words), made.word.steps
    whole = isinstance(step.end, Literal) and int(step.end.value) % count == 0 and made.flipped is None
    along = [n for n, own in enumerate(operand.subscripts) if made.iterator in iterators_in((own,))]
    match word:
        case Call(made.word.made, values, ScalarType.INT32) if whole and len(values) == count and len(along) == 1:
            steps = operand.subscripts[along[0]] == IteratorReference(made.iterator)
            others = tuple(place if n == along[0] else own for n, own in enumerate(operand.subscripts))
            elements = (_is_read(own, n, operand, others, along[0], made.word) for n, own in enumerate(values))
            return steps and all(elements)
        case _:
            return False


def _wrong_end(
    old: Statement, parts: tuple[Statement, ...], products: tuple[Read, Read], after: Specialization, made: Dots
) -> Counterexample | None:
    """Whether the result loses what flipped bits add to it."""
    wrong = Counterexample(Violation.CHANGED, f"what flipped bits of {made.flipped} add to {made.name}")
    (other,) = (read for read in products if read.tensor != made.flipped)
    (flipped,) = (read for read in products if read.tensor == made.flipped)
    sums, end = next(own for own in parts if own.target == made.sums), parts[-1]
    written = parts.index(next(own for own in parts if own.target == dict(made.copies)[other.tensor]))
    if flipped.type is not other.type or not written < parts.index(sums) < len(parts) - 2:
        return wrong
    along = other.subscripts.index(IteratorReference(made.iterator))
    places = tuple(IteratorReference(own.name) for own in sums.iterators)
    words, ones = Read(dict(made.copies)[other.tensor], places, ScalarType.INT32), Literal(ONES, ScalarType.INT32)
    operands = (ones, words) if other.type is ScalarType.INT8 else (words, ones)
    adds = sums.reduction is Reduction.ADD and sums.initialize and not sums.conditions and not sums.blocks
    kept = tuple(place for n, place in enumerate(places) if n != along)
    whole = _runs_over(sums, after.layouts[words.tensor].shape)
    if not (whole and adds and sums.value == Call("byte_dot", operands, ScalarType.INT32) and sums.subscripts == kept):
        return wrong
    shape = tuple(extent for n, extent in enumerate(after.layouts[words.tensor].shape) if n != along)
    if not _lies_apart(after.layouts[sums.target], shape):
        return wrong
    factor = Literal(-FLIPPED if other.type is ScalarType.INT8 else FLIPPED, ScalarType.INT32)
    sum = Read(sums.target, tuple(own for n, own in enumerate(other.subscripts) if n != along), ScalarType.INT32)
    wanted = replace(
        old,
        name=end.name,
        iterators=tuple(own for own in old.iterators if own.name != made.iterator),
        value=Binary(BinaryOperator.MULTIPLY, sum, factor, ScalarType.INT32),
        initialize=False,
        required=(),
    )
    return None if end == wanted else wrong
