"""Convolutions of tensors (N, C, ...), each in one definition with its bias.

Borders are conditions of the reduction.  Channels stand in texts by letters: ``g`` for groups, ``c`` for those that are
summed, ``f`` for those of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, elements, number
from tc.graph.ir.values import Value
from tc.graph.operators.neural.phases import Phase, phased_sums, phases_of
from tc.graph.operators.neural.windows import Windows, offset, where
from tc.graph.operators.texts import access, definition, parameter


@frozen
class Channels:
    """How channels stand in the image, the weights and the result: letters in order, whose sizes are in capitals."""

    image: str
    weights: str
    result: str
    sizes: Mapping[str, Dimension]

    def extents(self, letters: str) -> tuple[Dimension, ...]:
        """The sizes of the letters."""
        return tuple(self.sizes[letter] for letter in letters)

    def view(self, builder: Builder, x: Value) -> Value:
        """The image with its channels as the letters say."""
        if len(self.image) == 1:
            return x
        return builder.reshape(x, (x.shape[0], *self.extents(self.image), *x.shape[2:]))


def channels_of(
    what: str, image: Dimension, weights: Dimension, result: Dimension, groups: int, order: str = "gfc"
) -> Channels:
    """The channels of operands: ``weights`` are those of one group, ``result`` has those of all.

    ``what`` is convolved, for messages.  ``order``: of the channels of the weights.
    """
    if groups < 1 or (isinstance(image, int) and isinstance(weights, int) and image != weights * groups):
        raise GraphError(f"{what}: weights for {groups} groups of {weights} channels do not fit {image} channels")
    if isinstance(result, int) and result % groups:
        raise GraphError(f"{what}: {result} channels of the result do not divide into {groups} groups")
    each = result // groups
    if groups == 1:
        return Channels("c", order.replace("g", ""), "f", {"c": weights, "f": each})
    if weights == 1 and each == 1:
        return Channels("c", "c", "c", {"c": groups})
    return Channels("gc", order, "gf", {"g": groups, "c": weights, "f": each})


def convolution(
    builder: Builder, x: Value, weights: Value, bias: Value | None, windows: Windows, groups: int = 1
) -> Value:
    """The convolution with weights (F, C / groups, ...)."""
    channels = channels_of(builder.origin, x.shape[1], weights.shape[1], weights.shape[0], groups)
    at = Moved(tuple(windows.sizes), tuple(windows.positions), tuple(windows.places), tuple(windows.clauses()))
    return _reduced(builder, "conv", x, weights, bias, channels, windows, at)


def convolution_of_blocks(builder: Builder, x: Value, weights: Value, windows: Windows, groups: int = 1) -> Value:
    """The convolution with windows that divide the image into blocks, whose elements are dimensions of their own."""
    channels = channels_of(builder.origin, x.shape[1], weights.shape[1], weights.shape[0], groups)
    pairs = zip(windows.sizes, windows.kernel, strict=True)
    sizes = tuple(text for size, extent in pairs for text in (size, str(extent)))
    blocks = (*x.shape[:2], *(part for own in zip(_blocks(x, windows), windows.kernel, strict=True) for part in own))
    at = Moved(sizes, _paired(windows), tuple(windows.places), ())
    return _reduced(builder, "conv", builder.reshape(x, blocks), weights, None, channels, windows, at)


def _paired(windows: Windows) -> tuple[str, ...]:
    """As in ``h, kh, w, kw``."""
    return tuple(name for pair in zip(windows.places, windows.elements, strict=True) for name in pair)


def _blocks(x: Value, windows: Windows) -> list[int]:
    """How many blocks there are along each axis."""
    pairs = zip(x.shape[2:], windows.kernel, strict=True)
    return [number(extent, "an extent") // kernel for extent, kernel in pairs]


def transposed_convolution(
    builder: Builder,
    x: Value,
    weights: Value,
    bias: Value | None,
    windows: Windows,
    counts: Sequence[str],
    groups: int = 1,
) -> Value:
    """The adjoint of a convolution, with weights (C, F / groups, ...); ``counts``: the extents of the result, as texts.

    An element of the result is a sum, so that elements which no window has are 0 and may be anywhere.  Where each has
    one window, the elements of windows are dimensions of their own: there is no condition then.  With other strides, it
    is computed in phases.
    """
    each = weights.shape[0] // groups
    channels = channels_of(builder.origin, x.shape[1], each, weights.shape[1] * groups, groups, "gcf")
    if windows.are_blocks(counts):
        at = Moved(tuple(windows.sizes), tuple(windows.places), _paired(windows), ())
        found = _reduced(builder, "conv_transpose", x, weights, bias, channels, windows, at)
        spatial = zip(x.shape[2:], windows.kernel, strict=True)
        return builder.reshape(found, (*found.shape[:2], *(elements(pair) for pair in spatial)))
    sources, clauses = windows.sources()
    ranges = [f"{place} in 0:{count}" for place, count in zip(windows.places, counts, strict=True)]
    at = Moved(tuple(windows.sizes), tuple(sources), tuple(windows.places), (*ranges, *clauses))
    phases = phases_of(windows, counts)
    return _reduced(builder, "conv_transpose", x, weights, bias, channels, windows, at, phases)


@frozen
class Moved:
    """Where windows are: sizes of the image behind its channels, positions in it, and those in the result."""

    sizes: tuple[str, ...]
    positions: tuple[str, ...]
    places: tuple[str, ...]
    clauses: tuple[str, ...]


@frozen
class Convolved:
    """Sums of products of the image at some positions with the weights, and the bias if there is one.

    Operands are the image, the weights and the bias, whose channels are those of ``channels``.  ``phases``: those of a
    transposed convolution that is computed in some.
    """

    name: str
    channels: Channels
    windows: Windows
    at: Moved
    bias: bool
    phases: tuple[tuple[Phase, ...], ...] | None = None

    @property
    def positions(self) -> tuple[str, ...]:
        """Those in the image."""
        return self.at.positions

    def text(self, operands: Sequence[Value]) -> str:
        """The definition.  Halves are summed in a temporary, so that the bias is added before they are rounded."""
        x, weights = operands[:2]
        channels, windows = self.channels, self.windows
        parameters = [
            parameter(x.type, ["N", *channels.image.upper(), *self.at.sizes], "X"),
            parameter(weights.type, [*channels.weights.upper(), *windows.kernel], "K"),
        ]
        if self.bias:
            parameters.append(parameter(operands[2].type, channels.result.upper(), "B"))
        if self.phases is not None:
            return definition(self.name, parameters, ["Y"], self._in_phases(self.phases, x.type))
        at = ["n", *channels.result, *self.at.places]
        total = access("S" if self.bias and x.type.is_half else "Y", at)
        product = self._product(self.at.positions, windows.elements)
        statements = [f"{total} +=! {product}{where(self.at.clauses)}"]
        if self.bias:
            statements.append(f"{access('Y', at)} = {self._result(total, x.type)}")
        return definition(self.name, parameters, ["Y"], statements)

    def _product(self, positions: Sequence[str], taps: Sequence[str]) -> str:
        image = access("X", ["n", *self.channels.image, *positions])
        return f"{image} * {access('K', [*self.channels.weights, *taps])}"

    def _result(self, total: str, type: ScalarType) -> str:
        """What becomes of a sum."""
        found = f"{total} + {access('B', self.channels.result)}" if self.bias else total
        return f"{type}({found})" if type.is_half else found

    def _in_phases(self, phases: Sequence[Sequence[Phase]], type: ScalarType) -> list[str]:
        letters = self.channels.result
        sums, results = list[str](), list[str]()
        for at, own in enumerate(phased_sums(self.windows, phases)):
            total, ranges = "0", own.ranges
            if own.empty:
                ranges = ["n in 0:N", *(f"{letter} in 0:{letter.upper()}" for letter in letters), *ranges]
            else:
                total = access(f"T{at}", ["n", *letters, *self.windows.places])
                sums.append(f"{total} +=! {self._product(own.positions, own.taps)}{where(own.clauses)}")
            place = access("Y", ["n", *letters, *own.places])
            results.append(f"{place} = {self._result(total, type)}{where(ranges)}")
        return [*sums, *results]


def _reduced(
    builder: Builder,
    name: str,
    x: Value,
    weights: Value,
    bias: Value | None,
    channels: Channels,
    windows: Windows,
    at: Moved,
    phases: tuple[tuple[Phase, ...], ...] | None = None,
) -> Value:
    """The result of ``Convolved`` for operands with all channels in one dimension."""
    operands = [
        channels.view(builder, x),
        builder.reshape(weights, (*channels.extents(channels.weights), *weights.shape[2:])),
    ]
    if bias is not None:
        operands.append(builder.reshape(bias, channels.extents(channels.result)))
    operator = Convolved(name, channels, windows, at, bias is not None, phases)
    found = builder.apply(operator, *operands)
    every = elements(channels.extents(channels.result))
    return builder.reshape(found, (found.shape[0], every, *found.shape[1 + len(channels.result) :]))


def weight_gradient(
    builder: Builder, x: Value, gradient: Value, windows: Windows, kernel: Sequence[Dimension], groups: int = 1
) -> Value:
    """The gradient of the weights (F, C / groups, ...) of a convolution, given that of its result.

    Each is a sum over all windows.  ``kernel``: the shape of the weights.
    """
    channels = channels_of(builder.origin, x.shape[1], kernel[1], kernel[0], groups)
    counts = [f"O{size}" for size in windows.sizes]
    target = access("K", [*channels.weights, *windows.elements])
    result, image = (["n", *letters] for letters in (channels.result, channels.image))
    product = f"{access('G', [*result, *windows.places])} * {access('X', [*image, *windows.positions])}"
    counted = tuple(f"{place} in " for place in windows.places)  # the gradient says how many windows there are
    clauses = [clause for clause in windows.clauses(kernel=True) if not clause.startswith(counted)]
    parameters = [
        parameter(x.type, ["N", *channels.image.upper(), *windows.sizes], "X"),
        parameter(gradient.type, ["N", *channels.result.upper(), *counts], "G"),
    ]
    text = definition("conv_weights", parameters, ["K"], [f"{target} +=! {product}{where(clauses)}"])
    spread = (gradient.shape[0], *channels.extents(channels.result), *gradient.shape[2:])
    (found,) = builder.call(text, channels.view(builder, x), builder.reshape(gradient, spread))
    return builder.reshape(found, tuple(kernel))


def causal_convolution(
    builder: Builder, x: Value, weights: Value, bias: Value | None, state: Value | None, *, gated: bool
) -> tuple[Value, ...]:
    """Each channel of a sequence (N, C, L) with weights (C, 1, K), up to each element; and the last K - 1.

    ``state``: the K - 1 elements before it; None for zeros.  ``gated``: times the logistic function of itself.
    """
    before = number(weights.shape[2], f"{builder.origin}: the extent of the weights") - 1
    type = x.type
    parameters = [f"{type}(N,C,L) X", f"{weights.type}(C,{before + 1}) K"]
    operands = [x, builder.reshape(weights, (weights.shape[0], before + 1))]
    place = f"l + k{offset(-before)}"
    statements = [f"T(n, c, l) +=! X(n, c, {place}) * K(c, k) where l in 0:L, {place} in 0:L"]
    earlier, total = "0", "T(n, c, l)"
    if bias is not None:
        parameters.append(f"{bias.type}(C) B")
        operands.append(bias)
        total = f"{total} + B(c)"
    if state is not None:
        parameters.append(f"{state.type}(N,C,{before}) Z")
        operands.append(state)
        statements.append(
            f"T(n, c, l) += Z(n, c, l + k) * K(c, k) where l in 0:L, k in 0:{before + 1}, l + k in 0:{before}"
        )
        earlier = "Z(n, c, k + L)"
    made = "t / (1 + exp(-t))" if gated else "t"
    statements.append(f"Y(n, c, l) = {type}({made}) where t = {total}")
    last = f"k + L >= {before} ? X(n, c, k + L{offset(-before)}) : {earlier}"
    statements.append(f"S(n, c, k) = {type}({last}) where n in 0:N, c in 0:C, k in 0:{before}")
    return builder.call(definition("causal_conv", parameters, ["Y", "S"], statements), *operands)
