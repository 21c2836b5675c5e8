"""``Wanted``: which kernel is requested, and what identifies it in a cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field, fields, replace
from typing import Final, assert_never

from tc.artifact.definition import Definition
from tc.base.frozen import frozen
from tc.base.generator import generator_version
from tc.base.json_records import from_json
from tc.cache.format.ingredients import Ingredients, with_numerics
from tc.cache.format.records import PREDICTED
from tc.language.program.specialization import ArraySpec, Signature, SymbolicSize, extents_text
from tc.runtime.host.threads import available_threads
from tc.store.measured_machine import measured_machine
from tc.targets.numerics import Numerics
from tc.targets.options import Options
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, OpenClTarget, Target

# Kernels use nothing of an address but that elements lie at multiples of their size.
_ALIGNMENT: Final = "element"


@frozen
class Wanted:
    """A requested kernel; ``options`` None asks for the best ones that are known with such ``numerics``.

    ``device``: the number of the GPU that it is measured on, if it runs on one.  ``predicted``: it is on none, and its
    times are predicted.
    """

    definition: Definition
    signature: Signature
    target: Target
    options: Options | None
    device: int = 0
    numerics: Numerics = field(default_factory=Numerics)
    predicted: bool = False

    def ingredients(self, compiler: str) -> Ingredients:
        """What the kernel depends on, with names replaced by positions."""
        places = {name: place for place, name in enumerate(self.definition.interface.names)}
        arguments, results = self.signature.arguments, self.signature.results
        target, architecture = target_names(self.target)
        numerics = self.numerics if self.options is None else self.options.numerics
        return Ingredients(
            program=with_numerics(self.definition.canonical, "" if numerics == Numerics() else numerics.to_json()),
            shapes=shapes_text([spec.shape for _, spec in arguments]),
            dtypes=_listed([str(spec.dtype) for _, spec in arguments]),
            strides=_listed([_strides(places[name], spec) for name, spec in (*arguments, *results)]),
            alignment=_ALIGNMENT,
            scalars=_listed([(places[name], value) for name, value in self.signature.scalars]),
            aliases=_listed([(places[output], places[input]) for output, input in self.signature.aliases]),
            symbolic=_listed(
                [
                    (size.most, [(places[n], dimension) for n, dimension in size.places])
                    for size in self.signature.symbolic
                ]
            ),
            target=target,
            architecture=architecture,
            compiler=compiler,
            generator=generator_version(),
        )

    def opened(self, symbolic: str) -> Wanted | None:
        """A kernel that serves this call, too, with sizes open as an ingredient says; None if it would not.

        ValueError for text that ``ingredients`` does not make.
        """
        names = self.definition.interface.names
        try:
            sizes = tuple(
                SymbolicSize(most, tuple((names[place], dimension) for place, dimension in places))
                for most, places in _symbolic(symbolic)
            )
        except (IndexError, RecursionError) as error:
            raise ValueError(f"symbolic sizes are pairs of a number and places, got {symbolic!r}") from error
        signature = self.signature.opened(sizes)
        return None if signature is None else replace(self, signature=signature)

    @property
    def threads(self) -> int:
        """How many the static default is chosen for on this machine."""
        return threads_of(self.target)

    @property
    def machine(self) -> str:
        """What measurements of the kernel are made on."""
        if self.predicted and isinstance(self.target, CudaTarget):
            from tc.targets.devices import USUAL

            return f"{USUAL[self.target.architecture]} ({PREDICTED})"
        return measured_machine(gpu=isinstance(self.target, CudaTarget), device=self.device)

    def __str__(self) -> str:
        signature = self.signature
        shapes = ", ".join(
            f"{name}: {spec.dtype}[{', '.join(signature.extents(name))}]" for name, spec in signature.arguments
        )
        return f"{self.definition.interface.name}({shapes}) on {self.target}"


@frozen
class _Extents:
    """Ingredients as ``Wanted`` makes them."""

    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, object], ...]


_NAMES: Final = tuple(field.name for field in fields(_Extents))


@frozen
class _Symbolic:
    """Symbolic sizes, each with its places: numbers of arguments with numbers of dimensions."""

    sizes: tuple[tuple[int, tuple[object, ...]], ...]


def _symbolic(text: str) -> list[tuple[int, list[tuple[int, int]]]]:
    """What an ingredient says; ValueError for text that ``Wanted`` never made.

    Of earlier generators, it names arguments alone: those whose first dimension it is.
    """
    found = from_json(_Symbolic, {"sizes": json.loads(text)}).sizes
    return [(most, [_symbolic_place(place) for place in places]) for most, places in found]


def _symbolic_place(place: object) -> tuple[int, int]:
    match place:
        case [int(argument), int(dimension)] if argument >= 0 and dimension >= 0:
            return argument, dimension
        case int(argument) if argument >= 0:
            return argument, 0
        case _:
            raise ValueError(f"symbolic sizes are pairs of a number and places, got {place!r}")


def shapes_text(shapes: Sequence[tuple[int, ...]]) -> str:
    """The ingredient ``shapes`` of a kernel for arguments of these shapes."""
    return _listed(shapes)


def threads_of(target: Target) -> int:
    """How many threads the static default of a target is chosen for on this machine."""
    return available_threads() if isinstance(target, CpuTarget) else 1


def extents_of(ingredients: Ingredients) -> tuple[tuple[str, ...], ...] | None:
    """``extents_text`` of all arguments; None for ingredients that ``Wanted`` does not make."""
    try:
        found = from_json(_Extents, {name: json.loads(getattr(ingredients, name)) for name in _NAMES})
        opened: dict[int, dict[int, int]] = {}
        for most, places in _symbolic(ingredients.symbolic):
            for argument, dimension in places:
                opened.setdefault(argument, {})[dimension] = most
        # Those of the results come behind them.
        arguments = [argument for argument, _ in found.strides[: len(found.shapes)]]
        pairs = zip(found.shapes, arguments, strict=True)
        return tuple(extents_text(shape, opened.get(argument, {})) for shape, argument in pairs)
    except (ValueError, RecursionError):
        return None


def target_names(target: Target) -> tuple[str, str]:
    """Of the target and of its architecture."""
    match target:
        case CpuTarget() | CudaTarget():
            name, _, architecture = str(target).partition(":")
            return name, architecture
        case EmulatorTarget(host):
            return "emulator", str(host)
        case OpenClTarget():
            from tc.runtime.opencl.opencl import opencl_device

            return "opencl", opencl_device().name
        case _:
            assert_never(target)


def _listed(values: Sequence[object]) -> str:
    return json.dumps(values, separators=(",", ":"))


def _strides(place: int, spec: ArraySpec) -> object:
    return place, "contiguous" if spec.strides is None else spec.strides
