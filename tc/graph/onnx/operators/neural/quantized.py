"""Quantization, and products of quantized numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.broadcasts import spread
from tc.graph.operators.neural.quantization import quantized
from tc.graph.operators.pointwise import broadcast_shape, pointwise
from tc.graph.operators.texts import access, definition, iterators, parameter, sizes


class _Grains:
    """Scales and zero points of a tensor: one for all of it, for each place on an axis, or for each block of places."""

    def __init__(self, operation: Operation, x: Value) -> None:
        self._operation = operation
        self.names, self.extents = iterators(len(x.shape)), sizes(len(x.shape))
        self.operands, self.parameters = [x], [parameter(x.type, self.extents, "x")]
        self.clauses: list[str] = []

    @property
    def element(self) -> str:
        """An element of the tensor."""
        return access("x", self.names)

    def add(self, given: Value, name: str) -> str:
        """What a scale or a zero point is for an element."""
        operation, rank, block = self._operation, len(self.names), self._operation.integer("block_size", 0)
        names, extents = list(self.names), list(self.extents)
        axis = operation.axis(operation.integer("axis", 1), rank) if rank > 1 else 0
        if all(extent == 1 for extent in given.shape):
            given, names, extents = operation.builder.reshape(given, ()), [], []
        elif not block and len(given.shape) == 1:
            names, extents = [names[axis]], [extents[axis]]
        elif block and len(given.shape) == rank:
            names[axis], extents[axis] = f"{names[axis]} / {block}", "S"
            self.clauses = [f"{self.names[axis]} in 0:{self.extents[axis]}"]
        else:
            own = len(given.shape)
            raise operation.error(f"`{name}` has {own} dimensions, `x` has {rank}, and `block_size` is {block}")
        self.operands.append(given)
        self.parameters.append(parameter(given.type, extents, name))
        return access(name, names)

    def result(self, name: str, value: str, clause: str = "") -> Value:
        """The tensor of the values."""
        clauses = ", ".join([*self.clauses, *([clause] if clause else [])])
        statement = f"{access('Y', self.names)} = {value}{f' where {clauses}' if clauses else ''}"
        return self._operation.one(definition(name, self.parameters, ["Y"], [statement]), *self.operands)


def _quantize(operation: Operation) -> Sequence[Value]:
    x, scale, zero = operation.operand(0), operation.operand(1), operation.optional(2)
    type = _type_of(operation, "output_dtype", ScalarType.UINT8 if zero is None else zero.type)
    # The type of the scale, or an attribute, says how precise the quotient is.
    precision = _type_of(operation, "precision", scale.type)
    grains = _Grains(operation, x)
    divisor = grains.add(scale, "scale")
    dividend = grains.element if x.type.is_floating else f"float64({grains.element})"
    exact = precision if precision.is_floating else ScalarType.FLOAT64
    return [_rounded(operation, grains.result("quotient", f"{exact}({dividend} / {divisor})"), zero, type)]


def _rounded(operation: Operation, quotient: Value, zero: Value | None, type: ScalarType) -> Value:
    """A quotient, which its own node has rounded to its type, as numbers of ``type``."""
    grains = _Grains(operation, quotient)
    offset = "" if zero is None else grains.add(zero, "zero")
    saturate = bool(operation.integer("saturate", 1))
    value, clause = quantized(f"float32({grains.element})", offset, type, saturate=saturate)
    return grains.result("quantize", value, clause)


def _type_of(operation: Operation, name: str, default: ScalarType) -> ScalarType:
    """The type that an attribute names; 0 stands for the default."""
    number = operation.integer(name, 0)
    return operation.type_of(number) if number else default


def _dequantize(operation: Operation) -> Sequence[Value]:
    x, scale, zero = operation.operand(0), operation.operand(1), operation.optional(2)
    type = _type_of(operation, "output_dtype", scale.type)
    grains = _Grains(operation, x)
    factor = grains.add(scale, "scale")
    exact = ScalarType.FLOAT32 if x.type.is_floating else ScalarType.INT32
    value = f"{exact}({grains.element})"
    if zero is not None:
        value = f"({value} - {exact}({grains.add(zero, 'zero')}))"
    return [grains.result("dequantize", f"{type}(float32({value}) * {factor})")]


def _dynamic_quantize(operation: Operation) -> Sequence[Value]:
    x, type, builder = operation.operand(0), ScalarType.UINT8, operation.builder
    names = iterators(len(x.shape))
    statements = [
        f"high {'max=!' if names else '='} {access('x', names)}",
        f"low {'min=!' if names else '='} {access('x', names)}",
        "bottom = min(low, 0)",
        "top = max(high, 0)",
        f"scale = (top == bottom ? 1 : top - bottom) / {type.maximum}",
    ]
    text = definition("range_of", [parameter(x.type, sizes(len(names)), "x")], ["bottom", "scale"], statements)
    bottom, scale = operation.call(text, x)
    zero = _rounded(operation, pointwise(builder, "quotient", "-{0} / {1}", [bottom, scale]), None, type)
    result = _rounded(operation, pointwise(builder, "quotient", "{0} / {1}", [x, scale]), zero, type)
    return [result, scale, zero]


def _matmul_integer(operation: Operation) -> Sequence[Value]:
    a, b = operation.operand(0), operation.operand(1)
    return [_product(operation, a, b, operation.optional(2), operation.optional(3))]


def _quantized_matmul(operation: Operation) -> Sequence[Value]:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (operation.operand(index) for index in range(8))
    if any(extent != 1 for extent in (*y_scale.shape, *y_zero.shape)):
        raise operation.error("the result must have one scale and one zero point, which have one element")
    product = _product(operation, a, b, a_zero, b_zero)
    factors = [_by_row(operation, a_scale), b_scale, operation.builder.reshape(y_scale, ())]
    formula = "float32({0}) * ({1} * {2} / {3})"
    scaled = pointwise(operation.builder, "scaled", formula, [product, *factors], ScalarType.FLOAT32)
    return [_rounded(operation, scaled, y_zero, y_zero.type)]


def _by_row(operation: Operation, given: Value) -> Value:
    """One number, or one for each row of a matrix, as a column."""
    return operation.builder.reshape(given, (*given.shape, 1)) if len(given.shape) == 1 else given


def _is_zero(operation: Operation, zero: Value) -> bool:
    """Whether a zero point is known to be 0."""
    known = operation.builder.array_of(zero)
    return known is not None and not known.any()


def _product(operation: Operation, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """The product of matrices less their zero points, of rows of ``a`` and of columns of ``b``."""
    builder = operation.builder
    left = a if len(a.shape) > 1 else builder.reshape(a, (1, *a.shape))
    right = b if len(b.shape) > 1 else builder.reshape(b, (*b.shape, 1))
    given = {"A": left, "B": right}
    if a_zero is not None and not _is_zero(operation, a_zero):
        given["a_zero"] = _by_row(operation, a_zero)
    if b_zero is not None and not _is_zero(operation, b_zero):
        given["b_zero"] = b_zero
    batch = broadcast_shape([left.shape[:-2], right.shape[:-2]], builder.origin)
    found = operation.one(_product_text(given, batch), *given.values())
    columns = found.shape[-1:] if len(b.shape) > 1 else ()
    return builder.reshape(found, (*(found.shape[:-1] if len(a.shape) > 1 else found.shape[:-2]), *columns))


def _product_text(given: Mapping[str, Value], batch: Shape) -> str:
    """The definition.  Sums of rows and columns take the zero points off, so that bytes are multiplied."""
    names, extents = iterators(len(batch), "b"), sizes(len(batch), "B")
    rows, common, columns = given["A"].shape[-2], given["A"].shape[-1], given["B"].shape[-1]
    places = {"A": ((rows, common), "mk", "MK"), "B": ((common, columns), "kn", "KN")}
    parameters, at = [], {}
    for name, operand in given.items():
        shape, own, sizes_of = places.get(name, ((rows, columns), "mn", "MN"))
        declared, at[name] = spread(operand, (*batch, *shape), name, [*names, *own], [*extents, *sizes_of])
        parameters.append(declared)
    kind = ScalarType.FLOAT32 if given["A"].type.is_floating else ScalarType.INT32
    a, b, a_zero, b_zero = (
        f"{kind}({access(name, at[name])})" if name in given else "" for name in ("A", "B", "a_zero", "b_zero")
    )
    y = access("Y", [*names, "m", "n"])
    if kind.is_floating or not (a_zero or b_zero):
        left, right = (f"({x} - {zero})" if zero else x for x, zero in ((a, a_zero), (b, b_zero)))
        return definition("matmul", parameters, ["Y"], [f"{y} +=! {left} * {right}"])
    product = access("product", [*names, "m", "n"])
    row, column = (access(name, [i for i in at[x] if i not in (0, "k")]) for name, x in (("row", "A"), ("column", "B")))
    statements, value = [f"{product} +=! {a} * {b}"], product
    if b_zero:
        statements.append(f"{row} +=! {a}")
        value += f" - {b_zero} * {row}"
    if a_zero:
        statements.append(f"{column} +=! {b}")
        value += f" - {a_zero} * ({column} - K * {b_zero})" if b_zero else f" - {a_zero} * {column}"
    return definition("matmul", parameters, ["Y"], [*statements, f"{y} = {value}"])


RULES: Final[dict[str, Rule]] = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QLinearMatMul": _quantized_matmul,
    "QuantizeLinear": _quantize,
}
