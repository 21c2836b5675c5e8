"""Typed expressions of statement bodies as C text, with the values that ``tc.language.program.program`` promises.

Every fragment has the C type in which the dialect computes its scalar type: halves are floats in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Final, TypeGuard, assert_never

from tc.base.faults import BOUND, OUTSIDE, UNKNOWN, Check
from tc.base.frozen import frozen
from tc.base.remembered import Remembered
from tc.base.types import Kind, ScalarType, computation_type
from tc.codegen.index.hoisted_reads import HoistedRead, held_by
from tc.codegen.index.indices import index_fragment, index_literal, require_fit
from tc.codegen.index.launch_offsets import LaunchOffsets
from tc.codegen.index.offset_texts import OffsetTexts
from tc.codegen.index.pieces import Pieces
from tc.codegen.index.shared_offsets import SharedOffsets
from tc.codegen.index.words import side_by_side
from tc.codegen.text.conversions import converted, has_own_arithmetic, loaded, narrowed
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, call, cast, conditional, element, filled, infix, listed, named, prefix
from tc.codegen.text.functions import function_name
from tc.codegen.text.literals import bare_integer, literal_fragment
from tc.codegen.text.names import Names
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
    iterators_in,
    walk,
)
from tc.language.program.proven_inside import is_proven_inside
from tc.language.program.specialization import Layout, OpenStride, Sizes
from tc.polyhedral.analysis.offsets import Arguments, Forms, LinearForm, recombined, subscript_form
from tc.polyhedral.analysis.ranges import Ranges, range_of
from tc.polyhedral.analysis.strides import element_offset, extent_index, moved, span_form, stride_index
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW, Swizzle

# The local variable in which a routine notes a fault.
FAULTED: Final = "faulted"
_FAULTED: Final = named(FAULTED)
_ARITHMETIC: Final = (BinaryOperator.ADD, BinaryOperator.SUBTRACT, BinaryOperator.MULTIPLY)
# Arithmetic on truth values is that of NumPy, and that of integers converted back: whatever is not 0 is true.
_BITWISE: Final = {BinaryOperator.ADD: "|", BinaryOperator.SUBTRACT: "^", BinaryOperator.MULTIPLY: "&"}
_COMBINE: Final = {Reduction.ADD: BinaryOperator.ADD, Reduction.MULTIPLY: BinaryOperator.MULTIPLY}
# By the bytes of the signed ones that may overflow.
_UNSIGNED: Final = {4: ScalarType.UINT32, 8: ScalarType.UINT64}


@frozen
class Site:
    """Where a statement is printed: the values of its iterators, in terms of ``variables``, which have texts.

    ``offsets``: of elements, as far as statements around it have them, too; None where each has its own.  ``fixed``:
    those that the whole kernel has.  ``ranges``: of the variables.  ``pieces``: elements that a thread has in arrays;
    ``hoisted``: in variables.
    """

    statement: str
    arguments: Arguments
    variables: Mapping[str, Fragment]
    offsets: SharedOffsets | None = None
    ranges: Ranges = field(default_factory=dict)
    fixed: LaunchOffsets | None = None
    pieces: Pieces | None = None
    hoisted: tuple[HoistedRead, ...] = ()

    def seen_by(self, iterators: Iterable[str]) -> tuple[object, ...]:
        """All that the text of something with these iterators depends on."""
        own = [self.arguments[name] for name in iterators]
        return (self.variables, self.ranges, self.offsets, self.fixed, self.pieces, *own)


class ExpressionPrinter:
    """Prints the expressions of one kernel, and numbers the checks of its gathers as it meets them."""

    def __init__(
        self,
        names: Names,
        layouts: Mapping[str, Layout],
        sizes: Sizes,
        checked: bool,
        dialect: Dialect,
        scalars: frozenset[str] = frozenset(),
        swizzles: Mapping[str, Swizzle] = MappingProxyType({}),
    ) -> None:
        self._names = names
        self._layouts = layouts
        self._sizes = sizes
        self._checked = checked
        self._dialect = dialect
        self._scalars = scalars
        self._swizzles = swizzles
        self._checks: dict[Check, int] = {}
        self._forms: Final = Forms()
        self._elements: Final = Remembered[Fragment]()
        self._iterators: Final = Remembered[tuple[str, ...]]()
        self._last_texts: OffsetTexts | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks so far; fault number n means element n - 1."""
        return tuple(self._checks)

    def value(self, expression: Expression, site: Site) -> Fragment:
        """The value of the expression inside the body of a statement."""
        match expression:
            case Literal():
                return literal_fragment(expression, self._dialect)
            case IteratorReference(name):
                argument = site.arguments[name]
                fragment = self._index_fragment(argument, site)
                wide = isinstance(argument, IndexLiteral) or self._dialect.narrow
                return cast(self._dialect.values[INDEX_TYPE], fragment) if wide else fragment
            case SizeReference(name) | ScalarReference(name, _):
                return named(self._names.scalars[name])
            case Read():
                return self._read(expression, site)
            case Unary(operator, operand, type):
                return self._unary(operator, self.value(operand, site), type)
            case Binary():
                return self._binary(expression, site)
            case Select(condition, then, otherwise):
                return conditional(*(self.value(part, site) for part in (condition, then, otherwise)))
            case Cast(operand, type):
                return converted(self.value(operand, site), operand.type, type, self._dialect)
            case Call(function, arguments, type):
                name = function_name(function, type, self._dialect.library)
                if word := side_by_side(expression, lambda own: self.offset(own.tensor, own.subscripts, site)):
                    return call(f"{name}_at", prefix("&", self.source(word, site)))
                return call(name, *(self.value(argument, site) for argument in arguments))
            case InRange(index, begin, end):
                position = self.value(index, site)
                first, last = (self.bound(expression, bound, site) for bound in (begin, end))
                return infix("&&", infix("<=", first, position), infix("<", position, last))
            case _:
                assert_never(expression)

    def bound(self, inside: InRange, bound: Expression, site: Site) -> Fragment:
        """A bound of a range that reads tensors; outside of the iterator's extent it is 0, and the fault is noted."""
        value = self.value(bound, site)
        if not self._checked:
            return value
        extent = self.value(inside.extent, site)
        sides = (part for side in (inside.begin, inside.end) for part in walk(side))
        tensor = next(part.tensor for part in sides if isinstance(part, Read))
        known = int(inside.extent.value) if isinstance(inside.extent, Literal) else UNKNOWN
        check = Check(site.statement, tensor, BOUND, known)
        number = Fragment(str(self.number(check)))
        return call("tc_checked_index", value, infix("+", extent, Fragment("1")), prefix("&", _FAULTED), number)

    def location(
        self,
        tensor: str,
        subscripts: Sequence[Expression],
        site: Site,
        indices: Mapping[int, Fragment] = MappingProxyType({}),
    ) -> Fragment:
        """The element in memory, as something to assign to; the subscripts are known to be inside the tensor.

        ``indices``: the texts of those that depend on data, by dimension.
        """
        return self._element(tensor, subscripts, indices, site)

    def check(self, statement: str, tensor: str, dimension: int) -> Check:
        """The check of an index into a tensor."""
        extent = self._layouts[tensor].bounds[dimension]
        return Check(statement, tensor, dimension, extent if isinstance(extent, int) else UNKNOWN)

    def number(self, check: Check) -> int:
        """The number of the fault that a check notes."""
        return self._checks.setdefault(check, len(self._checks) + 1)

    def offset(self, tensor: str, subscripts: Sequence[Expression], site: Site) -> LinearForm | None:
        """Where the element is; None where that depends on data."""
        layout = self._layouts[tensor]
        return element_offset(subscripts, layout, site.arguments, self._sizes, site.ranges, self._forms)

    def extent(self, tensor: str, dimension: int, site: Site) -> Fragment:
        """The number of elements in a dimension."""
        return self._index_fragment(extent_index(self._layouts[tensor].bounds[dimension], self._sizes), site)

    def load(self, location: Fragment, type: ScalarType) -> Fragment:
        """The value of an element in memory."""
        return loaded(location, type)

    def stored(self, value: Expression, type: ScalarType, site: Site) -> Fragment:
        """A value in the form that is kept in memory; a number that is only copied keeps its bits."""
        match value:
            case Read(tensor) if type.is_half and self._layouts[tensor].type is type and self._layouts[tensor].size:
                return self.source(value, site)
            case Cast(operand) if type.is_half and value.type is type:
                return narrowed(self.value(operand, site), operand.type, type, self._dialect)
            case _:
                return self.store(self.value(value, site), type)

    def store(self, value: Fragment, type: ScalarType) -> Fragment:
        """A computed value in the form that is kept in memory."""
        return narrowed(value, ScalarType.FLOAT32, type, self._dialect) if type.is_half else value

    def combine(self, reduction: Reduction, left: Fragment, right: Fragment, type: ScalarType) -> Fragment:
        """``left reduction right`` for operands of a type."""
        match reduction:
            case Reduction.ADD | Reduction.MULTIPLY:
                return self._arithmetic(_COMBINE[reduction], left, right, computation_type(type))
            case Reduction.MINIMUM | Reduction.MAXIMUM:
                return call(function_name(reduction.value, type, self._dialect.library), left, right)
            case _:
                assert_never(reduction)

    def atomic(self, reduction: Reduction, location: Fragment, value: Fragment, type: ScalarType) -> Fragment:
        """What combines a value into an element of memory in one step."""
        return call(f"tc_atomic_{reduction.name.lower()}_{type}", prefix("&", location), value)

    def reduced(
        self, reduction: Reduction, target: Fragment, value: Fragment, type: ScalarType, computed: ScalarType
    ) -> Fragment:
        """What combines a value into an element of a type, in another one that it is computed in."""
        operator = _COMBINE.get(reduction)
        if operator is not None and not type.is_half and self._is_exact(type):
            return filled("{} {}= {};", target, operator.value, value)
        combined = self.combine(reduction, self.load(target, type), value, computed)
        return filled("{} = {};", target, self.store(combined, type))

    def source(self, read: Read, site: Site) -> Fragment:
        """The element that is read, as it is in memory; indices that depend on data are checked."""
        indices = self._checked_indices(read, site)
        return self._element(read.tensor, read.subscripts, indices, site)

    def prefetch(self, read: Read, site: Site, later: Site) -> Fragment | None:
        """The statement that asks for what a gather reads at a later site; None where it is no gather by one index.

        The index is read ahead, within its tensor; what it says may be anything, for nothing is read there.
        """
        gathered = [d for d, subscript in enumerate(read.subscripts) if not is_proven_inside(subscript)]
        if self._dialect.prefetch is None or len(gathered) != 1:
            return None
        subscript = read.subscripts[gathered[0]]
        index = subscript.operand if isinstance(subscript, Cast) else subscript
        if not isinstance(index, Read) or min(self._layouts[index.tensor].strides, default=0) < 0:
            return None
        ahead = self.offset(index.tensor, index.subscripts, later)
        if ahead is None:
            return None
        span = span_form(self._layouts[index.tensor], self._sizes).plus(LinearForm(-1))
        last = index_fragment(span.expression(), site.variables, self._dialect)
        place = index_fragment(ahead.expression(), later.variables, self._dialect)
        value = element(self._names.tensors[index.tensor], call("tc_min_int64", place, last))
        layout = self._layouts[read.tensor]
        around = (Literal(0, INDEX_TYPE) if d in gathered else s for d, s in enumerate(read.subscripts))
        rest = self.offset(read.tensor, tuple(around), site)
        if rest is None:
            return None
        row = self._scaled(cast(self._dialect.index, value), layout.steps[gathered[0]], site)
        offset = infix("+", row, index_fragment(rest.expression(), site.variables, self._dialect))
        size = infix("*", offset, Fragment(str(layout.type.itemsize)))
        return self._dialect.prefetch.filled(tensor=named(self._names.tensors[read.tensor]), bytes=size)

    def _read(self, read: Read, site: Site) -> Fragment:
        layout = self._layouts[read.tensor]
        if site.hoisted and (form := self.offset(read.tensor, read.subscripts, site)) is not None:
            name = held_by(site.hoisted, read.tensor, form)
            if name is not None:
                return self.load(named(name), layout.type)
        indices = self._checked_indices(read, site)
        if indices and self._checked and layout.size == 0:
            # Every index is out of range, and there is no element to read instead.
            return cast(self._dialect.values[read.type], filled("({}, 0)", listed(indices.values())))
        return self.load(self._element(read.tensor, read.subscripts, indices, site), layout.type)

    def _checked_indices(self, read: Read, site: Site) -> dict[int, Fragment]:
        """The subscripts that depend on data, by dimension."""
        gathered = [d for d, subscript in enumerate(read.subscripts) if not is_proven_inside(subscript)]
        indices = {dimension: self.value(read.subscripts[dimension], site) for dimension in gathered}
        if not self._checked:
            return indices
        for dimension in gathered:
            number = self.number(self.check(site.statement, read.tensor, dimension))
            arguments = (
                indices[dimension],
                self.extent(read.tensor, dimension, site),
                prefix("&", _FAULTED),
                Fragment(str(number)),
            )
            indices[dimension] = call("tc_checked_index", *arguments)
        return indices

    def _element(
        self, tensor: str, subscripts: Sequence[Expression], indices: Mapping[int, Fragment], site: Site
    ) -> Fragment:
        """The element in memory; ``indices``: the subscripts that depend on data, by dimension."""
        if tensor in self._scalars:
            return named(self._names.tensors[tensor])
        if indices:
            return self._element_at(tensor, subscripts, indices, site)
        names = self._iterators.of((subscripts,), lambda: tuple(iterators_in(subscripts)))
        where = (tensor, subscripts, *site.seen_by(names))
        return self._elements.of(where, lambda: self._element_at(tensor, subscripts, indices, site))

    def _element_at(
        self, tensor: str, subscripts: Sequence[Expression], indices: Mapping[int, Fragment], site: Site
    ) -> Fragment:
        layout = self._layouts[tensor]
        linear = LinearForm()
        terms: list[tuple[str, Fragment]] = []
        for dimension, (subscript, step) in enumerate(zip(subscripts, layout.steps, strict=True)):
            form = None if dimension in indices else subscript_form(subscript, site.arguments, site.ranges, self._forms)
            if form is not None:
                linear = linear.plus(moved(form, step, self._sizes))
                continue
            # The index of a gather is checked even where a stride of 0 makes every element the same.
            index = indices[dimension] if dimension in indices else self.value(subscript, site)
            if step == 0 and dimension not in indices:
                continue
            if isinstance(step, int) and step < 0 and terms:
                terms.append(("-", self._scaled(index, -step, site)))
            else:
                terms.append(("+", self._scaled(index, step, site)))
        rest = recombined(linear)
        if site.pieces and not terms and (held := site.pieces.element(tensor, rest, site.variables)):
            return held
        offset: Fragment | None = None
        for sign, term in terms:
            offset = term if offset is None else infix(sign, offset, term)
        if offset is None or rest != LinearForm():
            fragment = self._index(rest, site)
            offset = fragment if offset is None else infix("+", offset, fragment)
        if tensor in self._swizzles:
            assert not terms, "data choose no place in what is swizzled"
            offset = self._swizzled(rest, self._swizzles[tensor], layout.type.itemsize, site)
        return element(
            self._names.tensors[tensor], self._watched(offset, layout, site) if self._dialect.watches else offset
        )

    def _swizzled(self, form: LinearForm, swizzle: Swizzle, itemsize: int, site: Site) -> Fragment:
        """The offset of a place: the swizzle is asked for what is inside of eight rows of a panel only."""
        row, width = swizzle.row // itemsize, SWIZZLED_ROW // itemsize
        matrix, left, whole = row * swizzle.rows, form, LinearForm()
        for unit, scaled in ((matrix, matrix), (8 * row, 8 * width), (width, swizzle.rows * width)):
            if unit == width and not 0 <= range_of(left.expression(), site.ranges).most < row:
                continue  # of several rows
            terms = {term: factor for term, factor in left.factors.items() if factor % unit == 0}
            part = LinearForm(left.constant - left.constant % unit, terms)
            left = left.plus(part, -1)
            factors = {term: factor // unit * scaled for term, factor in terms.items()}
            whole = whole.plus(LinearForm(part.constant // unit * scaled, factors))
        values = range_of(left.expression(), site.ranges)
        if 0 <= values.least <= values.most < width:  # of the first row
            return self._index(whole.plus(left), site)
        panels = () if row == width else (row, swizzle.rows)
        sizes = (Fragment(str(size)) for size in (itemsize, *panels))
        offset = call("tc_swizzled_panels" if panels else "tc_swizzled", self._index(left, site), *sizes)
        return offset if whole == LinearForm() else infix("+", offset, self._index(whole, site))

    def _scaled(self, index: Fragment, step: int | OpenStride, site: Site) -> Fragment:
        """How far an index that depends on data moves the element."""
        if step == 1:
            return index
        if isinstance(step, int):
            return infix("*", index, Fragment(str(step)))
        product = LinearForm(0, {stride_index(step, self._sizes): step.factor})
        return infix("*", index, self._index_fragment(product.expression(), site))

    def _watched(self, offset: Fragment, layout: Layout, site: Site) -> Fragment:
        """The offset where it is inside the tensor; else the fault is noted."""
        inside = layout.offsets
        first = Fragment(str(inside.start))
        number = Fragment(str(OUTSIDE))
        shifted = infix("-", offset, first) if inside.start else offset
        count = Fragment(str(len(inside)))
        if layout.packed:  # what lies behind the last element is not the caller's
            count = self._index_fragment(span_form(layout, self._sizes).expression(), site)
        checked = call("tc_checked_index", shifted, count, prefix("&", _FAULTED), number)
        return infix("+", checked, first) if inside.start else checked

    def _index(self, form: LinearForm, site: Site) -> Fragment:
        if site.fixed and (fixed := site.fixed.text(form, site.variables, site.ranges)):
            return fixed
        shared = None if site.offsets is None else site.offsets.name(form)
        if shared is None:
            return self._texts(site).text(form)
        if form.constant == 0:
            return named(shared)
        sign = "-" if form.constant < 0 else "+"
        return infix(sign, named(shared), index_literal(abs(form.constant)))

    def _texts(self, site: Site) -> OffsetTexts:
        """What was printed in the same loops before."""
        last = self._last_texts
        if last is None or last.variables is not site.variables or last.ranges is not site.ranges:
            last = self._last_texts = OffsetTexts(site.variables, site.ranges, self._dialect)
        return last

    def _index_fragment(self, expression: IndexExpression, site: Site) -> Fragment:
        require_fit(expression, site.ranges, self._dialect)
        return index_fragment(expression, site.variables, self._dialect)

    def _unary(self, operator: UnaryOperator, operand: Fragment, type: ScalarType) -> Fragment:
        match operator:
            case UnaryOperator.NOT:
                return prefix("!", operand)
            case UnaryOperator.NEGATE:
                negated = prefix("-", self._unsigned(operand, type))
                return negated if self._is_exact(type) else cast(self._dialect.values[type], negated)
            case _:
                assert_never(operator)

    def _binary(self, expression: Binary, site: Site) -> Fragment:
        operator, type = expression.operator, expression.left.type
        left, right = self.value(expression.left, site), self.value(expression.right, site)
        # A literal needs no cast where the other operand already has the type.
        if _is_integer_literal(expression.right) and not _is_integer_literal(expression.left):
            right = bare_integer(expression.right)
        elif _is_integer_literal(expression.left) and not _is_integer_literal(expression.right):
            left = bare_integer(expression.left)
        if operator in _ARITHMETIC:
            return self._arithmetic(operator, left, right, computation_type(type))
        if operator in (BinaryOperator.DIVIDE, BinaryOperator.REMAINDER):
            return self._divide(operator, left, right, expression.right)
        return infix(operator.value, left, right)

    def _arithmetic(self, operator: BinaryOperator, left: Fragment, right: Fragment, type: ScalarType) -> Fragment:
        if type is ScalarType.UINT16 and operator is BinaryOperator.MULTIPLY:
            # Promoted to int, the product could overflow.
            left = cast(self._dialect.values[ScalarType.UINT32], left)
        if type is ScalarType.BOOL:
            return infix(_BITWISE[operator], left, right)
        result = infix(operator.value, self._unsigned(left, type), self._unsigned(right, type))
        return result if self._is_exact(type) else cast(self._dialect.values[type], result)

    def _is_exact(self, type: ScalarType) -> bool:
        """Whether the operators of the language give sums, differences and products as they should be."""
        return has_own_arithmetic(type) and not self._overflows(type)

    def _overflows(self, type: ScalarType) -> bool:
        return not self._dialect.wraps and type.kind is Kind.SIGNED and type.itemsize >= 4

    def _unsigned(self, operand: Fragment, type: ScalarType) -> Fragment:
        """The operand in a type that wraps around, where its own does not."""
        return cast(self._dialect.values[_UNSIGNED[type.itemsize]], operand) if self._overflows(type) else operand

    def _divide(self, operator: BinaryOperator, left: Fragment, right: Fragment, divisor: Expression) -> Fragment:
        type = computation_type(divisor.type)
        if type.is_floating:
            divides = operator is BinaryOperator.DIVIDE
            if divides:
                return infix("/", left, right)
            return call(function_name("fmod", type, self._dialect.library), left, right)
        if _is_integer_literal(divisor) and divisor.value not in (0, -1):
            result = infix(operator.value, left, right)
            return result if has_own_arithmetic(type) else cast(self._dialect.values[type], result)
        name = "divide" if operator is BinaryOperator.DIVIDE else "remainder"
        return call(f"tc_{name}_{type}", left, right)


def _is_integer_literal(expression: Expression) -> TypeGuard[Literal]:
    return isinstance(expression, Literal) and expression.type.is_integer
