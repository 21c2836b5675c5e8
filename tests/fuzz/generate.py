"""A whole random program: definitions, arguments, layouts, options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tc.base.types import ScalarType
from tests.fuzz.body import Body
from tests.fuzz.calls import call
from tests.fuzz.gathers import gather
from tests.fuzz.layouts import concatenate, convolution, pad, resample, triangles
from tests.fuzz.names import Names
from tests.fuzz.options import draw_options, draw_target
from tests.fuzz.overlaps import overlap
from tests.fuzz.ranged import ranged
from tests.fuzz.recipe import WRITABLE_LAYOUTS, Content, Layout, Recipe, ScalarArgument, TensorArgument
from tests.fuzz.recurrences import recurrence, sweep
from tests.fuzz.scatters import scatter
from tests.fuzz.source import Source, source_of
from tests.fuzz.statements import accumulate, elementwise, reduction, scan, update
from tests.fuzz.word_products import word_product

_BUDGET = 20_000
_LARGE_BUDGET = 60_000
_FEW_DIMENSIONS = 3
_STATEMENTS: list[tuple[float, Callable[[Body], None]]] = [
    (6, elementwise), (6, reduction), (1.5, scan), (1.5, accumulate), (2, update), (2, convolution), (1.5, gather),
    (1.5, scatter), (1.2, ranged), (1, recurrence), (0.8, sweep),
    (1, concatenate), (0.7, pad), (0.7, triangles), (1, resample), (1, call), (1.5, overlap),
    (0.5, word_product),
]  # fmt: skip
_SIZES = ((0.4, 0), (1, 1), (1, 2), (1, 3), (1, 5), (1, 7), (0.7, 13), (0.5, 17), (0.4, 31), (1, 4), (1, 8), (0.5, 16),
          (0.4, 32))  # fmt: skip
_LARGE_SIZES = (129, 129, 1000, 4099)
_LAYOUTS = ((8, Layout.CONTIGUOUS), (2, Layout.TRANSPOSED), (2, Layout.STRIDED), (1, Layout.REVERSED),
            (1, Layout.OFFSET), (1, Layout.READ_ONLY), (1, Layout.BROADCAST))  # fmt: skip
_TORCH_LAYOUTS = (Layout.CONTIGUOUS, Layout.TRANSPOSED, Layout.STRIDED, Layout.OFFSET, Layout.BROADCAST)
_CONTENTS = ((10, Content.ORDINARY), (1, Content.SPARSE), (0.7, Content.WIDE), (0.5, Content.SPECIAL))


def generate(seed: int, number: int, target: str | None = None) -> Recipe:
    """Program ``number`` of a run with this seed; for a target at random, unless one is named."""
    source = source_of(seed, number)
    large = source.chance(0.12)
    names = Names(source)
    name = names.definition()
    body = Body(source, names, _sizes(source, names, large), _types(source), _LARGE_BUDGET if large else _BUDGET)
    _inputs(body)
    wanted = source.choice([1, 1, 2, 2, 3, 4, 5])
    if source.chance(0.05):
        wanted += source.randint(1, 5)
    while len(body.statements) < wanted:
        source.weighted(_STATEMENTS)(body)
    results = _results(body)
    drawn = draw_target(source)
    chosen = target or drawn
    text = "\n".join([*body.definitions, body.text(name, results)])
    return Recipe(
        seed=seed,
        number=number,
        text=text,
        name=name,
        sizes=tuple(body.sizes.items()),
        arguments=(arguments := _dressed(source, body)),
        outputs=_outputs(source, results),
        shared=_shared(source, body, arguments, results),
        options=draw_options(source, chosen, scatters=body.scatters > 0),
        target=chosen,
        opened=_opened(source, arguments, body, chosen),
    )


def _sizes(source: Source, names: Names, large: bool) -> dict[str, int]:
    sizes = {names.size(): source.weighted(_SIZES) for _ in range(source.randint(1, 3))}
    if large:
        sizes[names.size()] = source.choice(_LARGE_SIZES)
    return sizes


def _types(source: Source) -> list[ScalarType]:
    """The types of a program: often one, sometimes any mixture."""
    common = [ScalarType.FLOAT32, ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32]
    every = list(ScalarType)
    kind = source.weighted([(3, "common"), (3, "one"), (2, "two"), (2, "many")])
    if kind == "common":
        return [source.choice(common)]
    return source.sample(every, {"one": 1, "two": 2, "many": 4}[kind])


def _inputs(body: Body) -> None:
    source = body.source
    for _ in range(source.randint(1, 3)):
        rank = source.choice([0, 1, 1, 2, 2, 2, 3, 4])
        extents = [body.extent() for _ in range(rank)]
        volume = 1
        for extent in extents:
            volume *= extent.value
        if volume <= 2 * body.budget:
            body.add_input(body.type(), extents)
    if source.chance(0.3):
        if source.chance(0.5):
            body.add_scalar(ScalarType.INT32, source.randint(0, 3))
        else:
            type = body.type()
            body.add_scalar(type, source.randint(0, 1) if not type.is_floating else source.choice([0.5, -1.25, 3.0]))


def _results(body: Body) -> list[str]:
    """Some of the values; those that came in, and the last one."""
    last = list(body.values)[-1]
    chosen = {name for name in body.values if body.source.chance(0.4)} | body.incoming | {last}
    results = [name for name in body.values if name in chosen]
    body.source.shuffle(results)
    return results


def _dressed(source: Source, body: Body) -> tuple[tuple[str, TensorArgument | ScalarArgument], ...]:
    """The arguments with contents and layouts."""
    torch = source.chance(0.15)
    found: list[tuple[str, TensorArgument | ScalarArgument]] = []
    for name, argument in body.parameters:
        if isinstance(argument, TensorArgument):
            below = argument.below
            if below is not None and source.chance(0.06):
                below += 1
            layout = source.choice(_TORCH_LAYOUTS) if torch else source.weighted(_LAYOUTS)
            content = source.weighted(_CONTENTS)
            found.append((name, replace(argument, content=content, layout=layout, torch=torch, below=below)))
        else:
            found.append((name, argument))
    return tuple(found)


def _outputs(source: Source, results: list[str]) -> tuple[tuple[str, Layout], ...]:
    if not source.chance(0.3):
        return ()
    return tuple((name, source.choice(WRITABLE_LAYOUTS)) for name in results if source.chance(0.7))


def _opened(
    source: Source, arguments: tuple[tuple[str, TensorArgument | ScalarArgument], ...], body: Body, target: str
) -> tuple[tuple[str, int], ...]:
    """Often sizes that stay symbolic, up to what they are or to more, in whatever dimensions they are.

    For values with many dimensions, GPUs launch the blocks of the greatest sizes, which takes the emulator long.
    """
    sizes = body.sizes
    dimensions = max(len(value.tensor.extents) for value in body.values.values())
    more = [0, 1, 3, 16, 100] if target == "cpu" or dimensions <= _FEW_DIMENSIONS else [0, 1, 3]
    extents = [argument.extents for _, argument in arguments if isinstance(argument, TensorArgument)]
    able = sorted({str(extent) for own in extents for extent in own if extent in sizes})
    if not able or not source.chance(0.6):
        return ()
    chosen = source.some(able, 0.4) or [source.choice(able)]
    return tuple((name, max(1, sizes[name]) + source.choice(more)) for name in chosen)


def _shared(
    source: Source,
    body: Body,
    arguments: tuple[tuple[str, TensorArgument | ScalarArgument], ...],
    results: list[str],
) -> tuple[tuple[str, str], ...]:
    """Now and then a result in the memory of an argument of its type and shape."""
    if not source.chance(0.1):
        return ()
    inputs = {tensor.name: tensor for tensor in body.inputs}
    able = [
        (result, name)
        for result in results
        for name, argument in arguments
        if isinstance(argument, TensorArgument)
        and argument.layout in WRITABLE_LAYOUTS
        and inputs[name].type is body.values[result].tensor.type
        and [e.value for e in inputs[name].extents] == [e.value for e in body.values[result].tensor.extents]
    ]
    return (source.choice(able),) if able else ()
