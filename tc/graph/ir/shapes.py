"""Shape inference: the shapes of a comprehension's results, for operands whose extents may be open."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tc.base.errors import ArgumentError, GraphError
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.graph.ir.sizes import Dimension, Shape, Size, least
from tc.graph.ir.values import Value
from tc.language.program.program import Binary, Call, Cast, Expression, Literal, SizeReference, Unary
from tc.language.program.specialization import ArraySpec, Signature
from tc.language.text.expression_text import expression_text

if TYPE_CHECKING:
    from tc.language.program.program import Program


def result_shapes(program: Program, operands: Sequence[Value]) -> dict[str, Shape]:
    """The shapes of the results by name.

    ArgumentError where the operands do not fit the parameters.  GraphError for shapes that depend on open sizes in a
    way that no ``Size`` expresses.
    """
    if len(operands) != len(program.arguments):
        raise ArgumentError(
            f"{program.name} takes {len(program.arguments)} operands ({', '.join(program.arguments)}), "
            f"got {len(operands)}"
        )
    shapes = [tuple(extent for extent in value.shape if isinstance(extent, int)) for value in operands]
    if all(len(shape) == len(value.shape) for shape, value in zip(shapes, operands, strict=True)):
        types = (value.type for value in operands)
        return {**_known_shapes(program, tuple(zip(types, shapes, strict=True)))}
    sizes = _sizes(program, dict(zip(program.arguments, operands, strict=True)))
    tensors = {tensor.name: tensor for tensor in program.tensors}
    return {name: tuple(_extent(e, sizes, program) for e in tensors[name].shape) for name in program.results}


@functools.lru_cache(maxsize=4096)
def _known_shapes(
    program: Program, operands: tuple[tuple[ScalarType, tuple[int, ...]], ...]
) -> Mapping[str, tuple[int, ...]]:
    """The same where all sizes are numbers; models repeat their layers."""
    from tc.language.lower.specialize import output_shapes

    pairs = zip(program.arguments, operands, strict=True)
    specs = tuple((name, ArraySpec(shape, type)) for name, (type, shape) in pairs)
    return output_shapes(program, Signature(specs))


def _sizes(program: Program, given: Mapping[str, Value]) -> dict[str, Dimension]:
    """The extents that the program's sizes stand for."""
    found: dict[str, Dimension] = {}
    for tensor in program.tensors:
        value = given.get(tensor.name)
        if value is None:
            continue
        if value.type is not tensor.type or len(value.shape) != len(tensor.shape):
            raise ArgumentError(f"{program.name}: argument `{tensor.name}` does not fit `{value}`")
        for declared, extent in zip(tensor.shape, value.shape, strict=True):
            if isinstance(declared, SizeReference):
                known = found.setdefault(declared.name, extent)
                if isinstance(known, Size) and isinstance(extent, int):
                    found[declared.name] = extent
                if isinstance(known, int) and isinstance(extent, int) and known != extent:
                    raise ArgumentError(f"{program.name}: the size `{declared.name}` is {known} and {extent}")
            elif isinstance(declared, Literal) and isinstance(extent, int) and declared.value != extent:
                raise ArgumentError(f"{program.name}: `{tensor.name}` is declared with {declared.value}, got `{value}`")
    return found


def _extent(expression: Expression, sizes: Mapping[str, Dimension], program: Program) -> Dimension:
    match expression:
        case Literal(value, _):
            return int(value)
        case SizeReference(name) if name in sizes:
            return sizes[name]
        case Cast(operand, _):
            return _extent(operand, sizes, program)
        case Unary(UnaryOperator.NEGATE, operand):
            return -_extent(operand, sizes, program)
        case Binary(operator, left, right):
            first, second = _extent(left, sizes, program), _extent(right, sizes, program)
            match operator:
                case BinaryOperator.ADD:
                    return first + second
                case BinaryOperator.SUBTRACT:
                    return first - second
                case BinaryOperator.MULTIPLY:
                    return first * second
                # Both are positive where the program runs, so that it does not matter which way they round.
                case BinaryOperator.DIVIDE:
                    return first // second
                case BinaryOperator.REMAINDER:
                    return first % second
        case Call("min", arguments):
            return least(*(_extent(argument, sizes, program) for argument in arguments))
        case Call("max", (Literal(0), other)) | Call("max", (other, Literal(0))):
            return _extent(other, sizes, program)
    raise GraphError(
        f"{program.name}: the extent `{expression_text(expression)}` cannot be expressed in sizes that are open; call "
        "the graph, or give its sizes"
    )
