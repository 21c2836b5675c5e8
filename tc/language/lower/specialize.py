"""``Program`` and ``Signature`` to ``Specialization``: values put in, everything checked that needs them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tc.base.counted import counted
from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.language.algebra.fold import fold, substitute
from tc.language.algebra.open_divisors import without_open_divisors
from tc.language.algebra.polynomial import Atoms
from tc.language.algebra.specialized import specialized
from tc.language.program.extent import Extent
from tc.language.program.guards import guarded_reads
from tc.language.program.program import (
    INDEX_TYPE,
    Cast,
    Expression,
    Literal,
    Precondition,
    Program,
    Role,
    ScalarReference,
    SizeReference,
    Tensor,
    rebuild,
    walk,
)
from tc.language.program.specialization import (
    ArraySpec,
    Layout,
    Signature,
    Sizes,
    Specialization,
    contiguous_strides,
)
from tc.language.prove.named_extents import has_named_extent, named_extents
from tc.language.prove.prove import prove_specialized
from tc.language.prove.symbolic import (
    always_holds,
    require_elements,
    symbolic_extent,
    symbolic_sizes,
)
from tc.language.text.expression_text import expression_text

# Addresses are byte offsets in 64-bit integers.
_MAXIMUM_BYTES = 2**63 - 1


def structural_scalars(program: Program) -> tuple[str, ...]:
    """The integer and bool scalar arguments whose values shape the program: those in subscripts, ranges and conditions.

    Their values belong to the signature.
    """
    whole = [scalar.name for scalar in program.scalars if not scalar.type.is_floating]
    if not whole:
        return ()
    # One condition guards many reads: by identity, each is visited once.
    expressions = {id(expression): expression for expression in _structure(program)}.values()
    used = {leaf.name for e in expressions for leaf in walk(e) if isinstance(leaf, ScalarReference)}
    return tuple(name for name in whole if name in used)


def _structure(program: Program) -> Iterator[Expression]:
    """Every expression that decides which instances run and which elements they touch."""
    for tensor in program.tensors:
        yield from tensor.shape
    for precondition in program.preconditions:
        yield precondition.condition
    for statement in program.statements:
        yield from statement.subscripts
        yield from statement.conditions
        yield from statement.required
        for iterator in statement.iterators:
            yield from (iterator.begin, iterator.end)
        for guarded in guarded_reads(statement.value):
            yield from guarded.read.subscripts
            yield from (condition for condition, _ in guarded.guards)


def output_shapes(program: Program, signature: Signature) -> dict[str, tuple[int, ...]]:
    """The shapes of the results, in their order.

    Raises ``ArgumentError`` where the arguments do not fit, as ``specialize`` does, but proves nothing.
    """
    values = _argument_values(program, signature)
    _check_preconditions(program, values, ())
    values.update(named_extents(program, values))
    _check_preconditions(program, values, (), of_named_extents=True)
    return {name: _shape(program, program.tensor(name), values) for name in program.results}


def specialize(program: Program, signature: Signature) -> Specialization:
    """The program for one signature, with literals for structural scalars and for sizes that do not stay open.

    Raises ``ArgumentError`` where the arguments do not fit the parameters, and ``RangeError`` (with a witness)
    where an access leaves its tensor or an element is written twice or not at all for these sizes.
    """
    sizes = symbolic_sizes(program, signature)
    opened = {SizeReference(name) for name, _ in sizes}
    values = {leaf: value for leaf, value in _argument_values(program, signature).items() if leaf not in opened}
    _check_preconditions(program, values, sizes)
    statements = program.statements
    if sizes:
        found = (specialized(statement, values) for statement in statements)
        statements = tuple(without_open_divisors(statement, sizes) for statement in found)
    values.update(named_extents(replace(program, statements=statements), values, sizes))
    _check_preconditions(program, values, sizes, of_named_extents=True)
    specs = {**dict(signature.results), **dict(signature.arguments)}
    tensors: list[Tensor] = []
    layouts: dict[str, Layout] = {}
    for tensor in program.tensors:
        extents = [_extent(program, tensor, dimension, values, sizes) for dimension in range(len(tensor.shape))]
        tensors.append(replace(tensor, shape=tuple(expression for expression, _, _ in extents)))
        shape = tuple(most for _, most, _ in extents)
        layout = _layout(program, tensor, shape, specs.get(tensor.name))
        layouts[tensor.name] = _opened(layout, tensor, tuple(found for _, _, found in extents))
    statements = tuple(specialized(statement, values) for statement in statements)
    names = tuple(name for name, _ in sizes)
    result = replace(program, sizes=names, tensors=tuple(tensors), statements=statements, preconditions=())
    if sizes:
        require_elements(result, sizes)
    specialization = Specialization(result, signature, layouts)
    prove_specialized(specialization, program, values)
    return specialization


def _argument_values(program: Program, signature: Signature) -> dict[Expression, Expression]:
    """Literals for all sizes and structural scalars, after checking every argument."""
    given = dict(signature.arguments)
    sizes: dict[str, tuple[int, str]] = {}
    values: dict[Expression, Expression] = {}
    for tensor in program.tensors:
        if tensor.role is not Role.INPUT:
            continue
        spec = given.get(tensor.name)
        if spec is None:
            raise ArgumentError(f"{program.name}: argument `{tensor.name}` is missing")
        _check_argument(program, tensor, spec, sizes)
    for name, (value, _) in sizes.items():
        values[SizeReference(name)] = Literal(value, INDEX_TYPE)
    scalars = dict(signature.scalars)
    types = {scalar.name: scalar.type for scalar in program.scalars}
    for name in structural_scalars(program):
        if name not in scalars:
            raise ArgumentError(f"{program.name}: the value of `{name}` is missing: it decides shapes or subscripts")
        type, value = types[name], scalars[name]
        if not type.minimum <= value <= type.maximum:
            raise ArgumentError(f"{program.name}: argument `{name}` is {type}, {value} does not fit")
        literal = Literal(bool(value) if type is ScalarType.BOOL else value, type)
        values[ScalarReference(name, type)] = literal
    return values


def _check_argument(program: Program, tensor: Tensor, spec: ArraySpec, sizes: dict[str, tuple[int, str]]) -> None:
    """Type, rank and extents of one argument; the sizes that it gives are added to ``sizes`` with their place."""
    name = f"{program.name}: argument `{tensor.name}`"
    if spec.dtype is not tensor.type:
        raise ArgumentError(f"{name} is declared {tensor.type}, got {spec.dtype}")
    if len(spec.shape) != len(tensor.shape):
        declared = ", ".join(expression_text(extent) for extent in tensor.shape)
        raise ArgumentError(
            f"{name} is declared ({declared}), with {counted(len(tensor.shape), 'dimension')}, got shape {spec.shape}"
        )
    for dimension, (declared_extent, extent) in enumerate(zip(tensor.shape, spec.shape, strict=True)):
        place = f"`{tensor.name}.{dimension}`"
        if isinstance(declared_extent, Literal) and declared_extent.value != extent:
            raise ArgumentError(f"{name} is declared with {declared_extent.value} as {place}, got shape {spec.shape}")
        if isinstance(declared_extent, SizeReference):
            known, where = sizes.setdefault(declared_extent.name, (extent, place))
            if known != extent:
                raise ArgumentError(
                    f"{program.name}: the size `{declared_extent.name}` is {known} in {where} and {extent} in {place}"
                )


def _check_preconditions(
    program: Program, values: Mapping[Expression, Expression], sizes: Sizes, *, of_named_extents: bool = False
) -> None:
    """Those that name extents of results are checked when the others hold, on which these extents may depend."""
    for precondition in program.preconditions:
        if has_named_extent(precondition.condition) is not of_named_extents:
            continue
        condition = substitute(precondition.condition, values)
        if any(isinstance(leaf, SizeReference) for leaf in walk(condition)):
            if not always_holds(condition, sizes):
                raise ArgumentError(
                    f"{program.name}: `{expression_text(precondition.condition)}` does not hold for all sizes that "
                    f"would stay open: {precondition.message}; pass numbers"
                )
        elif condition != Literal(True, condition.type):
            raise ArgumentError(_violated(program, precondition, values))


def _violated(program: Program, precondition: Precondition, values: Mapping[Expression, Expression]) -> str:
    leaves = dict.fromkeys(leaf for leaf in walk(precondition.condition) if leaf in values)
    literals = {leaf: literal for leaf in leaves if isinstance(literal := values[leaf], Literal)}
    found = ", ".join(f"{expression_text(leaf)} = {literal.value}" for leaf, literal in literals.items())
    return (
        f"{program.name}: `{expression_text(precondition.condition)}` does not hold for {found}: {precondition.message}"
    )


def _shape(program: Program, tensor: Tensor, values: Mapping[Expression, Expression]) -> tuple[int, ...]:
    """The extents, all of them numbers."""
    extents = (_extent(program, tensor, dimension, values, ()) for dimension in range(len(tensor.shape)))
    return tuple(number for _, number, _ in extents)


def _extent(
    program: Program, tensor: Tensor, dimension: int, values: Mapping[Expression, Expression], sizes: Sizes
) -> tuple[Expression, int, Extent | None]:
    """An extent as an expression, its greatest value, and how it depends on symbolic sizes, if it does.

    A range that ends before it begins is empty.
    """
    extent = tensor.shape[dimension]
    folded = substitute(extent, values)
    if isinstance(folded, Literal):
        # Folding wraps like a kernel; integers of any size show what the extent should be.
        exact, found = Atoms().polynomial(_put_in(extent, values)).constant, None
        number = max(0, int(folded.value))
    else:
        found, number = symbolic_extent(program, tensor, folded, sizes)
        exact = number
        if found.is_constant:
            return Literal(number, INDEX_TYPE), number, None
    if exact is not None and exact > INDEX_TYPE.maximum:
        raise ArgumentError(
            f"{program.name}: dimension {dimension} of `{tensor.name}` would have {exact} elements, beyond 64-bit "
            "indexing"
        )
    return (Literal(number, INDEX_TYPE) if found is None else folded), number, found


def _put_in(expression: Expression, values: Mapping[Expression, Expression]) -> Expression:
    """The expression with literals for sizes and scalars, its arithmetic left undone."""
    found = values.get(expression) if isinstance(expression, SizeReference | ScalarReference) else None
    if found is not None:
        return found
    rebuilt = rebuild(expression, lambda child: _put_in(child, values))
    return fold(rebuilt) if isinstance(rebuilt, Cast) else rebuilt


def _layout(program: Program, tensor: Tensor, shape: tuple[int, ...], spec: ArraySpec | None) -> Layout:
    if spec is not None and spec.shape != shape:
        raise ArgumentError(f"{program.name}: result `{tensor.name}` has shape {shape}, got {spec.shape}")
    if spec is not None and spec.dtype is not tensor.type:
        raise ArgumentError(f"{program.name}: result `{tensor.name}` is {tensor.type}, got {spec.dtype}")
    strides = contiguous_strides(shape) if spec is None or spec.strides is None else spec.strides
    if 0 in shape:
        reach = 0
    else:
        reach = sum((extent - 1) * abs(stride) for extent, stride in zip(shape, strides, strict=True)) + 1
    if max(reach, math.prod(shape)) * tensor.type.itemsize > _MAXIMUM_BYTES:
        raise ArgumentError(
            f"{program.name}: `{tensor.name}` with shape {shape} spans more than {_MAXIMUM_BYTES} bytes, "
            "beyond 64-bit indexing"
        )
    return Layout(tensor.type, shape, strides)


def _opened(layout: Layout, tensor: Tensor, extents: tuple[Extent | None, ...]) -> Layout:
    """The layout with extents that stay open.

    Callers pass C-contiguous arrays of every size; temporaries have the strides of the greatest ones.
    """
    if not any(extents):
        return layout
    packed = tensor.role is not Role.TEMPORARY and layout.strides == contiguous_strides(layout.shape)
    return replace(layout, extents=extents, packed=packed)
