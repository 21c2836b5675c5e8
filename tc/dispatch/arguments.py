"""Binds the arguments of a call: checks and orders arrays, scalars and result arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import SupportsIndex

from tc.base.counted import counted
from tc.base.errors import ArgumentError, nearest
from tc.base.frozen import frozen
from tc.base.interface import Interface, TensorParameter
from tc.base.types import ScalarType
from tc.language.program.specialization import ArraySpec, Dynamic, Signature, SymbolicSize, contiguous_strides
from tc.runtime.frameworks.array_bytes import Sharing, sharing
from tc.runtime.frameworks.arrays import describe, describe_output, followed
from tc.runtime.views.scalars import convert_scalar, is_followed
from tc.runtime.views.view import ArrayView, Framework, element_strides


@frozen
class Arguments:
    """One call: views of the tensors by name, values of the scalars by name, and whose kind the results are.

    ``outputs`` holds the results that the caller brought; the others are allocated.
    """

    inputs: Mapping[str, ArrayView]
    scalars: Mapping[str, int | float]
    outputs: Mapping[str, ArrayView]
    framework: Framework

    @property
    def views(self) -> tuple[ArrayView, ...]:
        """All arrays, inputs first."""
        return (*self.inputs.values(), *self.outputs.values())

    def signature(self, interface: Interface) -> Signature:
        """What a kernel for this call depends on."""
        aliases = self.aliases(interface.name)
        structural = interface.structural
        shared = {output for output, _ in aliases}
        outputs = {name: _spec(self.outputs[name]) for name in interface.results if name in self.outputs}
        return Signature(
            arguments=tuple((name, _spec(self.inputs[name])) for name in interface.arguments if name in self.inputs),
            results=tuple((name, spec) for name, spec in outputs.items() if spec.strides is not None or name in shared),
            scalars=tuple((name, int(value)) for name, value in self.scalars.items() if name in structural),
            aliases=aliases,
        )

    def aliases(self, definition: str) -> tuple[tuple[str, str], ...]:
        """Outputs that are inputs; ArgumentError for outputs that overlap anything in another way."""
        found: list[tuple[str, str]] = []
        names = list(self.outputs)
        for position, name in enumerate(names):
            view = self.outputs[name]
            for other in names[:position]:
                if sharing(view, self.outputs[other]) is not Sharing.DISJOINT:
                    raise ArgumentError(
                        f"{definition}: the outputs {other} and {name} share memory; pass separate ones"
                    )
            shared = {other: sharing(view, self.inputs[other]) for other in self.inputs}
            for other, how in shared.items():
                if how is Sharing.OVERLAPPING:
                    raise ArgumentError(
                        f"{definition}: the output {name} overlaps the input {other}; pass a separate array"
                    )
            same = [other for other, how in shared.items() if how is Sharing.IDENTICAL]
            if len(same) > 1:
                raise ArgumentError(
                    f"{definition}: the output {name} is several inputs at once ({', '.join(same)}); "
                    "pass a separate array"
                )
            found += [(name, other) for other in same]
        return tuple(found)


def _spec(view: ArrayView) -> ArraySpec:
    return ArraySpec(view.shape, view.type, view.strides)


def in_order(interface: Interface, arguments: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
    """The arguments of a call in the order of the definition, some of which came by name."""
    if not named:
        return arguments
    given = dict(zip(interface.arguments, arguments, strict=False))
    for name in named:
        if name not in interface.arguments:
            guess = nearest(name, interface.arguments)
            hint = f"it takes {', '.join(interface.arguments)}" if guess is None else f"did you mean {guess}?"
            hint = "arrays for results are passed with out=" if name in interface.results else hint
            raise ArgumentError(f"{interface.name} has no argument {name}; {hint}")
        if name in given:
            raise ArgumentError(f"{interface.name}: the argument {name} is given twice, by its place and by its name")
    if len(arguments) > len(interface.arguments):
        _require_count(interface, arguments)
    given.update(named)
    missing = [name for name in interface.arguments if name not in given]
    if missing:
        which = f"argument {missing[0]} is" if len(missing) == 1 else f"arguments {', '.join(missing)} are"
        raise ArgumentError(f"{interface.name}: the {which} missing")
    return tuple(given[name] for name in interface.arguments)


def bind(interface: Interface, arguments: Sequence[object], out: object, *, writes: bool = True) -> Arguments:
    """The call's arguments by name; ArgumentError if their number, kinds or values do not fit the definition.

    ``writes``: the arrays in ``out`` will be written, and results made that autograd must not have to follow;
    otherwise everything is only read.
    """
    _require_count(interface, arguments)
    tensors = {tensor.name: tensor for tensor in interface.tensors}
    scalars = {scalar.name: scalar for scalar in interface.scalars}
    inputs: dict[str, ArrayView] = {}
    values: dict[str, int | float] = {}
    for name, value in zip(interface.arguments, arguments, strict=True):
        place = f"argument {name} of {interface.name}"
        if name in scalars:
            values[name] = convert_scalar(value, scalars[name].type, place)
        else:
            inputs[name] = _input(tensors[name], value, place)
    if writes and any(interface.tensor(name).type.is_floating for name in interface.results):
        for name, value in zip(interface.arguments, arguments, strict=True):
            if inputs[name].followed if name in inputs else is_followed(value):
                raise followed(f"argument {name} of {interface.name}")
    outputs = _outputs(interface, out, describe_output if writes else describe)
    return Arguments(inputs, values, outputs, framework_of(inputs, outputs))


def bind_specs(interface: Interface, arguments: Sequence[object], out: object = None) -> Signature:
    """The signature of a call on arrays, ``ArraySpec`` or plain shapes (tuples of integers); scalars by value.

    Extents that are ``tc.dynamic`` stay open.  ``out``: what is passed through ``out=``, likewise.
    """
    _require_count(interface, arguments)
    tensors = {tensor.name: tensor for tensor in interface.tensors}
    scalars = {scalar.name: scalar for scalar in interface.scalars}
    specs: dict[str, ArraySpec] = {}
    values: list[tuple[str, int]] = []
    for name, value in zip(interface.arguments, arguments, strict=True):
        place = f"argument {name} of {interface.name}"
        if name in tensors:
            specs[name] = _as_spec(tensors[name], value, place)
        elif scalars[name].structural:
            values.append((name, int(convert_scalar(value, scalars[name].type, place))))
    settled = tuple((name, replace(spec, shape=tuple(map(int, spec.shape)))) for name, spec in specs.items())
    given = _by_name(interface, out)
    results = [
        (name, _as_spec(interface.tensor(name), given[name], f"output {name} of {interface.name}"))
        for name in interface.results
        if given.get(name) is not None
    ]
    strided = tuple((name, spec) for name, spec in results if spec.strides is not None)
    return Signature(settled, strided, tuple(values), symbolic=_symbolic(interface, specs))


def _symbolic(interface: Interface, specs: Mapping[str, ArraySpec]) -> tuple[SymbolicSize, ...]:
    """The sizes that ``tc.dynamic`` opens somewhere."""
    most: dict[int, int] = {}
    places: dict[int, list[tuple[str, int]]] = {}
    for name, spec in specs.items():
        for dimension, (size, extent) in enumerate(zip(interface.tensor(name).sizes, spec.shape, strict=True)):
            if size is not None:
                places.setdefault(size, []).append((name, dimension))
            if not isinstance(extent, Dynamic):
                continue
            if size is None:
                raise ArgumentError(
                    f"argument {name} of {interface.name}: dimension {dimension} is declared as a number; "
                    "it cannot be tc.dynamic"
                )
            most[size] = int(extent)
    return tuple(SymbolicSize(most[size], tuple(places[size])) for size in sorted(most))


def _as_spec(tensor: TensorParameter, value: object, place: str) -> ArraySpec:
    if isinstance(value, ArraySpec):
        strides = contiguous_strides(value.shape) if value.strides is None else value.strides
        # Strides that no element follows are those of a contiguous array, as in the views of arrays.
        spec = ArraySpec(value.shape, value.dtype, element_strides(value.shape, strides, 1, place))
    elif isinstance(value, tuple):
        spec = ArraySpec(_extents(value, place), tensor.type)
    else:
        spec = _spec(describe(value, place))
    _require_fit(tensor, spec.dtype, spec.shape, place)
    return spec


def _extents(shape: tuple[object, ...], place: str) -> tuple[int, ...]:
    extents = tuple(
        extent if isinstance(extent, Dynamic) else extent.__index__()
        for extent in shape
        if isinstance(extent, SupportsIndex)
    )
    if len(extents) != len(shape):
        raise ArgumentError(f"{place}: a shape holds integers, got {shape}")
    return extents


def _input(tensor: TensorParameter, value: object, place: str) -> ArrayView:
    view = describe(value, place)
    _require_fit(tensor, view.type, view.shape, place)
    return view


def _require_count(interface: Interface, arguments: Sequence[object]) -> None:
    if len(arguments) != len(interface.arguments):
        expected = f"{counted(len(interface.arguments), 'argument')}"
        raise ArgumentError(
            f"{interface.name} takes {expected} ({', '.join(interface.arguments)}), got {len(arguments)}"
        )


def _require_fit(tensor: TensorParameter, type: ScalarType, shape: tuple[int, ...], place: str) -> None:
    if type is not tensor.type:
        remedy = f"convert the array, or declare `{type}` in the text"
        raise ArgumentError(f"{place}: expected element type {tensor.type}, got {type}; {remedy}")
    if len(shape) != tensor.dimensions:
        expected, given = (counted(number, "dimension") for number in (tensor.dimensions, len(shape)))
        raise ArgumentError(f"{place}: expected {expected}, got {given} {shape}")


def _outputs(interface: Interface, out: object, describe: Callable[[object, str], ArrayView]) -> dict[str, ArrayView]:
    given = _by_name(interface, out)
    views: dict[str, ArrayView] = {}
    for name in interface.results:
        tensor = interface.tensor(name)
        place = f"output {name} of {interface.name}"
        if given.get(name) is None:
            if tensor.in_out:
                raise ArgumentError(
                    f"{place}: the definition reads {name} before it writes it; pass its first value through out=, or "
                    f"let a reduction start afresh: write `+=!` (`*=!`, `min=!`, `max=!`), not `+=`"
                )
            continue
        view = describe(given[name], place)
        _require_fit(tensor, view.type, view.shape, place)
        views[name] = view
    return views


def _by_name(interface: Interface, out: object) -> Mapping[str, object]:
    return outputs_by_name(interface.name, interface.results, out)


def outputs_by_name(definition: str, results: Sequence[str], out: object) -> Mapping[str, object]:
    """``out=``: an array for a single result, a tuple in the order of the results, or a mapping by name."""
    if out is None:
        return {}
    if isinstance(out, Mapping):
        for name in out:
            if name not in results:
                raise ArgumentError(f"{definition} has no result {name!r}; it has {', '.join(results)}")
        return out
    if isinstance(out, (tuple, list)):
        if len(out) != len(results):
            expected = f"{counted(len(results), 'result')}"
            raise ArgumentError(f"{definition} has {expected} ({', '.join(results)}), out= holds {len(out)}")
        return dict(zip(results, out, strict=True))
    if len(results) != 1:
        raise ArgumentError(
            f"{definition} has {len(results)} results ({', '.join(results)}); out= must be a tuple "
            "of as many arrays (None for one to be allocated) or a dictionary by name"
        )
    return {results[0]: out}


def framework_of(inputs: Mapping[str, ArrayView], outputs: Mapping[str, ArrayView]) -> Framework:
    """Whose arrays the results are: the first argument's that is not plain NumPy, else NumPy's."""
    views = (*inputs.values(), *outputs.values())
    found = (view.framework for view in views if view.framework not in (Framework.NUMPY, Framework.OTHER))
    return next(found, Framework.NUMPY)
