"""Statements that move elements: convolutions, concatenation, interleaving, padding, triangles, resampling."""

from __future__ import annotations

from dataclasses import replace

from tc.base.types import ScalarType
from tests.fuzz.body import Body, whole
from tests.fuzz.model import Extent, Iterator, Tensor, Term, reading
from tests.fuzz.skeleton import clauses


def _pick(body: Body, least: int = 1) -> Tensor | None:
    """A tensor with so many dimensions."""
    able = [t for t in body.readable() if len(t.extents) >= least and t.below is None]
    return body.source.choice(able) if able else None


def _names(iterators: list[Iterator]) -> list[str]:
    return [i.name for i in iterators]


def convolution(body: Body) -> None:
    """``O(b, i) +=! X(b, s * i + k) * K(k)``: plain, strided, dilated or padded, in one or two dimensions."""
    source = body.source
    image = _pick(body)
    if image is None:
        return
    spatial = min(len(image.extents), source.randint(1, 2))
    free = body.names.iterators(8)
    if len(image.extents) + spatial > len(free):
        return
    batch = [whole(free.pop(), extent, bound=True) for extent in image.extents[:-spatial]]
    outer: list[Iterator] = []
    taps: list[Iterator] = []
    subscripts: list[str] = []
    guards: list[str] = []
    form = source.choice(["plain", "plain", "strided", "dilated", "padded"])
    for extent in image.extents[-spatial:]:
        width = source.randint(1, max(1, min(4, extent.value)))
        stride, dilation = (2 if form == "strided" else 1), (2 if form == "dilated" else 1)
        last = dilation * (width - 1)
        length = extent.value if form == "padded" else max(0, (extent.value - last - 1) // stride + 1)
        i, k = free.pop(), free.pop()
        taps.append(whole(k, body.extent(width), bound=True))
        text = f"{stride} * {i}" if stride > 1 else i
        text += f" + {dilation} * {k}" if dilation > 1 else f" + {k}"
        if form == "padded":
            text += f" - {width // 2}"
            guards += [f"{text} >= 0", f"{text} < {extent.text}"]
            outer.append(whole(i, extent))
        else:
            spelled = f"({extent.text} - {last} - 1) / {stride} + 1"
            outer.append(Iterator(i, Extent(0, "0"), Extent(length, spelled), source.chance(0.7)))
        subscripts.append(text)
    if not body.fits([*batch, *outer, *taps]):
        return
    type = image.type if image.type is not ScalarType.BOOL else ScalarType.INT32
    weights = body.add_input(type, [k.end for k in taps])
    read = reading(image, [*_names(batch), *subscripts])
    if guards:
        zero = "0 < 0" if read.is_bool else "0"
        read = replace(read, text=f"({' && '.join(guards)} ? {read.text} : {zero})")
    weight = reading(weights, _names(taps))
    expressions = body.expressions([*batch, *outer, *taps])
    value = expressions.product(read, weight)
    kept = [*batch, *outer]
    body.write(
        body.fresh_target(), _names(kept), source.choice(["+=!", "+=!", "max=!"]), value,
        [i.end.value for i in kept], clauses(body, kept), {image.name},
    )  # fmt: skip


def concatenate(body: Body) -> None:
    """``O(i) = A(i)``, ``O(i + N) = B(i)``: two tensors side by side in a dimension, or interleaved."""
    source = body.source
    first = _pick(body)
    if first is None:
        return
    axis = source.randrange(len(first.extents))
    rest = [e.value for e in first.extents]
    able = [
        t for t in body.readable()
        if len(t.extents) == len(rest)
        and all(e.value == n for d, (e, n) in enumerate(zip(t.extents, rest, strict=True)) if d != axis)
    ]  # fmt: skip
    second = source.choice(able)
    interleaved = second.extents[axis].value == rest[axis] and source.chance(0.4)
    total = rest[axis] + second.extents[axis].value
    exact = first.exact and second.exact
    type = body.type() if exact else first.type
    name = body.fresh_target()
    parts = ((first, "2 * {0}", "{0}"), (second, "2 * {0} + 1", "{0} + " + first.extents[axis].text))
    for tensor, woven, shifted in parts:
        iterators = [whole(i, e, bound=True) for i, e in zip(body.names.iterators(8), tensor.extents, strict=False)]
        subscripts = _names(iterators)
        value = Term(f"{type.value}({reading(tensor, subscripts).text})", type, exact=exact and not type.is_floating)
        subscripts[axis] = (woven if interleaved else shifted).format(subscripts[axis])
        extents = [*rest[:axis], total, *rest[axis + 1 :]]
        if not body.fits(iterators) or name in (first.name, second.name):
            return
        body.write(name, subscripts, "=", value, extents, clauses(body, iterators), {tensor.name})


def pad(body: Body) -> None:
    """``O(i + 1) = A(i)``, and a literal in the elements before it."""
    tensor = _pick(body)
    if tensor is None:
        return
    width = body.source.randint(1, 3)
    axis = body.source.randrange(len(tensor.extents))
    iterators = [whole(i, e, bound=True) for i, e in zip(body.names.iterators(8), tensor.extents, strict=False)]
    extents = [e.value + (width if d == axis else 0) for d, e in enumerate(tensor.extents)]
    name = body.names.tensor()
    shifted = _names(iterators)
    value = reading(tensor, shifted)
    shifted[axis] = f"{shifted[axis]} + {width}"
    border = list(iterators)
    border[axis] = whole(border[axis].name, Extent(width, str(width)))
    edge = [Iterator(i.name, i.begin, i.end, bound=False) for i in border]
    filler = Term(f"{tensor.type.value}({body.source.choice('017')})", tensor.type, exact=tensor.exact)
    if not body.fits(iterators):
        return
    body.write(name, _names(edge), "=", filler, extents, [i.clause for i in edge])
    body.write(name, shifted, "=", value, extents, clauses(body, iterators), {tensor.name})


def triangles(body: Body) -> None:
    """A matrix in two statements: below the diagonal one value, above it another one."""
    tensor = _pick(body, least=2)
    if tensor is None:
        return
    iterators = [whole(i, e) for i, e in zip(body.names.iterators(8), tensor.extents, strict=False)]
    if not body.fits(iterators):
        return
    (i, j), name = iterators[:2], body.names.tensor()
    read = reading(tensor, _names(iterators)).text
    extents = [e.value for e in tensor.extents]
    number = ScalarType.INT32 if tensor.type is ScalarType.BOOL else tensor.type
    lower = Term(f"{number.value}({read})", number, exact=tensor.exact)
    upper = Term(f"{number.value}({i.name} + {j.name})", number, exact=tensor.exact)
    others = [it.clause for it in iterators]
    if body.source.chance(0.5):
        split = body.source.choice([(f"{j.name} <= {i.name}", f"{j.name} > {i.name}"),
                                    (f"{i.name} + {j.name} < {j.end.text}", f"{i.name} + {j.name} >= {j.end.text}"),
                                    (f"{i.name} % 2 == 0", f"{i.name} % 2 != 0")])  # fmt: skip
        conditions = [[*others, split[0]], [*others, split[1]]]
    else:
        rest = [clause for clause in others if clause != j.clause]
        middle = f"min({i.name} + 1, {j.end.text})"
        conditions = [[*rest, f"{j.name} in 0:{middle}"], [*rest, f"{j.name} in {middle}:{j.end.text}"]]
    body.write(name, _names(iterators), "=", lower, extents, conditions[0], {tensor.name})
    body.write(name, _names(iterators), "=", upper, extents, conditions[1])


def resample(body: Body) -> None:
    """``O(i) = X(i / 2)``, ``X(i % 3)``, ``X(2 * i)``, ``X(N - 1 - i)``: another number of elements."""
    source = body.source
    tensor = _pick(body)
    if tensor is None or any(e.value == 0 for e in tensor.extents):
        return
    iterators: list[Iterator] = []
    subscripts: list[str] = []
    where: list[str] = []
    for name, extent in zip(body.names.iterators(8), tensor.extents, strict=False):
        times = source.randint(2, 3)
        form = source.choice(["repeat", "tile", "every", "reverse", "whole"])
        text, length, spelled = {
            "repeat": (f"{name} / {times}", times * extent.value, f"{times} * {extent.text}"),
            "tile": (f"{name} % {extent.value}", times * extent.value, f"{times} * {extent.text}"),
            "every": (f"{times} * {name}", (extent.value + times - 1) // times, ""),
            "reverse": (f"{extent.text} - 1 - {name}", extent.value, extent.text),
            "whole": (name, extent.value, ""),
        }[form]
        subscripts.append(text)
        iterators.append(Iterator(name, Extent(0, "0"), Extent(length, spelled), bound=not spelled))
        if spelled:
            where.append(iterators[-1].clause)
    if not body.fits(iterators):
        return
    value = body.expressions(iterators).maybe_changed(reading(tensor, subscripts))
    if source.chance(0.3):
        source.shuffle(iterators)
    extents = [i.end.value for i in iterators]
    body.write(body.fresh_target(), _names(iterators), "=", value, extents, where, {tensor.name})
