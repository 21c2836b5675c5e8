"""Random programs of products of halves and bytes, for matrix instructions: batches, convolutions, chains, scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import tc
from tc.base.types import ScalarType
from tests.fuzz.options import draw_gpu_options
from tests.fuzz.recipe import WRITABLE_LAYOUTS, Content, Layout, Recipe, TensorArgument
from tests.fuzz.source import Source, source_of

_BUDGET = 150_000
_HALVES = (ScalarType.FLOAT16, ScalarType.BFLOAT16)
_BYTES = (ScalarType.INT8, ScalarType.UINT8)
# Rows and columns, and steps of a sum; most are no multiples of what an instruction takes.
_SIDES = ((1, 8), (2, 16), (1, 17), (1, 23), (1, 24), (1, 31), (2, 32), (1, 33), (1, 37), (1, 48), (1, 64), (1, 65),
          (0.3, 5))  # fmt: skip
_STEPS = ((2, 16), (1, 17), (1, 24), (1, 29), (2, 32), (1, 33), (1, 40), (1, 48), (1, 50), (1, 64), (1, 66), (0.3, 7))
_LAYOUTS = ((12, Layout.CONTIGUOUS), (1, Layout.TRANSPOSED), (1, Layout.STRIDED), (1, Layout.OFFSET),
            (0.5, Layout.REVERSED), (0.5, Layout.BROADCAST))  # fmt: skip
_CONTENTS = ((12, Content.ORDINARY), (1, Content.SPARSE), (0.3, Content.WIDE), (0.7, Content.SPECIAL))
_ACTIVATIONS = ("fmax({0}, 0.0)", "{0} / (1.0 + exp(-{0}))", "tanh({0})", "{0} * 0.5", "fabs({0})")
_BATCHES = 0.35


@dataclass(frozen=True, slots=True)
class _Value:
    """What statements may read: its dimensions are names of sizes."""

    name: str
    type: ScalarType
    dimensions: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(map(str.lower, self.dimensions))})"


@dataclass(slots=True)
class _Draft:
    """A definition while it is written.  ``type``: of operands."""

    source: Source
    type: ScalarType
    sizes: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, TensorArgument] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)

    @property
    def sums(self) -> ScalarType:
        return ScalarType.INT32 if self.type in _BYTES else ScalarType.FLOAT32

    @property
    def declared(self) -> set[str]:
        """The sizes that arguments have, which statements can name."""
        return {str(name) for own in self.arguments.values() for name in own.extents}

    def size(self, extent: int) -> str:
        name = f"N{len(self.sizes)}"
        self.sizes[name] = extent
        return name

    def input(self, dimensions: Sequence[str], type: ScalarType | None = None, *, ordered: bool = False) -> _Value:
        """A new argument, with its dimensions in any order."""
        own = list(dimensions)
        if not ordered:
            self.source.shuffle(own)
        type = type or (self.source.choice(_BYTES) if self.type in _BYTES else self.type)
        name = f"a{len(self.arguments)}"
        layout, content = self.source.weighted(_LAYOUTS), self.source.weighted(_CONTENTS)
        self.arguments[name] = TensorArgument(type, tuple(own), layout, content)
        return _Value(name, type, tuple(own))

    def fits(self, *dimensions: str) -> bool:
        """Whether a statement over these sizes has few enough instances."""
        instances = 1
        for name in dimensions:
            instances *= self.sizes[name]
        return instances <= _BUDGET

    def write(self, dimensions: Sequence[str], type: ScalarType, operator: str, value: str, where: str = "") -> _Value:
        """A statement that writes a new value."""
        found = _Value(f"v{len(self.values)}", type, tuple(dimensions))
        self.statements.append(f"{found.text} {operator} {value}{where}")
        self.values.append(found)
        return found

    def factors(self, *texts: tuple[str, ScalarType]) -> tuple[str, ScalarType]:
        """A product in the type of sums, or in that of the factors."""
        plain = self.type in _HALVES and self.source.chance(0.5)
        parts = [text if plain else f"{self.sums}({text})" for text, _ in texts]
        return " * ".join(parts), texts[0][1] if plain else self.sums

    def operand(self, value: _Value) -> _Value:
        """The value in the type of operands."""
        if value.type in (_BYTES if self.type in _BYTES else (self.type,)):
            return value
        text = f"{value.text} % 100" if value.type is ScalarType.INT32 else value.text
        return self.write(value.dimensions, self.type, "=", f"{self.type}({text})")


def _product(draft: _Draft, value: _Value) -> _Value:
    """Another factor along one dimension of the value, sometimes with batches that both have."""
    source, value = draft.source, draft.operand(value)
    steps = source.choice(value.dimensions[-2:])
    new = draft.size(source.weighted(_SIDES))
    shared = [name for name in value.dimensions if name != steps and source.chance(0.15)]
    if not draft.fits(*value.dimensions, new):
        return value
    other = draft.input([*shared, steps, new])
    text, type = draft.factors((value.text, value.type), (other.text, other.type))
    kept = [name for name in value.dimensions if name != steps] + [new]
    if source.chance(0.3):
        source.shuffle(kept)
    return draft.write(kept, type, "+=!", text)


def _square(draft: _Draft, value: _Value) -> _Value:
    """A value times itself, transposed."""
    value = draft.operand(value)
    *others, steps = value.dimensions
    if not others or others[-1] not in draft.declared or not draft.fits(*value.dimensions, others[-1]):
        return value
    new = draft.size(draft.sizes[others[-1]])
    second = replace(value, dimensions=(*others[:-1], new, steps))
    text, type = draft.factors((value.text, value.type), (second.text, second.type))
    return draft.write([*others, new], type, "+=!", text, f" where {new.lower()} in 0:{others[-1]}")


def _convolution(draft: _Draft) -> _Value:
    """Along one or two dimensions, with strides, dilation, groups, or none, with 1 to 3 taps, and channels anywhere."""
    source = draft.source
    channels, filters = draft.size(source.weighted(_STEPS)), draft.size(source.weighted(_SIDES))
    outer = [draft.size(source.randint(1, 3))] if source.chance(0.6) else []
    groups = [draft.size(source.randint(1, 3))] if source.chance(0.3) else []
    spatial = [draft.size(source.choice([5, 9, 16, 18, 20, 33])) for _ in range(source.choice([1, 2]))]
    taps = [draft.size(source.choice([1, 2, 3, 3])) for _ in spatial]
    stride, dilation = source.choice([(1, 1), (1, 1), (1, 1), (2, 1), (1, 2)])
    results = [
        (draft.sizes[s] - dilation * (draft.sizes[t] - 1) - 1) // stride + 1 for s, t in zip(spatial, taps, strict=True)
    ]
    points = draft.sizes[channels] * draft.sizes[filters]
    for name in (*outer, *groups, *taps):
        points *= draft.sizes[name]
    for result in results:
        points *= result
    if points > 2 * _BUDGET:
        return _matrix(draft)
    last = source.chance(0.4)
    image = draft.input([*outer, *groups, *([*spatial, channels] if last else [channels, *spatial])])
    weights = draft.input([*groups, filters, *([*taps, channels] if last else [channels, *taps])])
    places = {}
    for name, tap in zip(spatial, taps, strict=True):
        first, second = ("2 * " if number == 2 else "" for number in (stride, dilation))
        places[name] = f"{first}{name.lower()} + {second}{tap.lower()}"
    subscripts = ", ".join(places.get(name, name.lower()) for name in image.dimensions)
    text, type = draft.factors((f"{image.name}({subscripts})", image.type), (weights.text, weights.type))
    # The result has sizes of its own, which have no name in the text.
    sizes = {name: draft.size(result) for name, result in zip(spatial, results, strict=True)}
    kept = [*outer, *groups, *([*spatial, filters] if last else [filters, *spatial])]
    if source.chance(0.5):
        source.shuffle(kept)
    found = _Value(f"v{len(draft.values)}", type, tuple(sizes.get(name, name) for name in kept))
    draft.statements.append(f"{found.name}({', '.join(map(str.lower, kept))}) +=! {text}")
    draft.values.append(found)
    return found


def _epilogue(draft: _Draft, value: _Value) -> _Value:
    """A bias, a residual, an activation, a conversion."""
    source, text, type = draft.source, value.text, value.type
    if type in (ScalarType.INT32, *_BYTES):
        bias = draft.input([source.choice(value.dimensions)], ScalarType.INT32)
        return draft.write(value.dimensions, ScalarType.INT32, "=", f"{text} + {bias.text}")
    if source.chance(0.6):
        text = f"{text} + {draft.input([source.choice(value.dimensions)], type).text}"
    if source.chance(0.2):
        text = f"{text} + {draft.input(value.dimensions, type).text}"
    value = draft.write(value.dimensions, type, "=", source.choice(_ACTIVATIONS).format(f"({text})"))
    if source.chance(0.3):
        other = source.choice([ScalarType.FLOAT32, *_HALVES])
        value = draft.write(value.dimensions, other, "=", f"{other}({value.text})")
    return value


def _scores(draft: _Draft) -> _Value:
    """Softmax of one product, times another factor."""
    source, own = draft.source, draft.source.choice(_HALVES)
    draft.type = own
    rows, columns = (draft.size(source.weighted(_SIDES)) for _ in range(2))
    depth, width = draft.size(source.weighted(_STEPS)), draft.size(source.weighted(_SIDES))
    outer = [draft.size(source.randint(1, 3))] if source.chance(0.4) else []
    q, k, v = (
        draft.input([*outer, *own_sizes], own) for own_sizes in ((rows, depth), (columns, depth), (columns, width))
    )
    single = source.chance(0.5)
    product = f"float32({q.text}) * float32({k.text})" if single else f"{q.text} * {k.text}"
    type = ScalarType.FLOAT32 if single else own
    s = draft.write([*outer, rows, columns], type, "+=!", product)
    m = draft.write([*outer, rows], type, "max=!", s.text)
    e = draft.write(s.dimensions, type, "=", f"exp({s.text} - {m.text})")
    t = draft.write(m.dimensions, type, "+=!", e.text)
    p = draft.write(s.dimensions, own, "=", f"{own}({e.text} / {t.text})")
    text = f"float32({p.text}) * float32({v.text})" if source.chance(0.5) else f"{p.text} * {v.text}"
    return draft.write([*outer, rows, width], ScalarType.FLOAT32 if "float32" in text else own, "+=!", text)


def _matrix(draft: _Draft) -> _Value:
    """An argument with rows and steps, sometimes in batches."""
    source = draft.source
    outer = [draft.size(source.randint(2, 3))] if source.chance(_BATCHES) else []
    return draft.input([*outer, draft.size(source.weighted(_SIDES)), draft.size(source.weighted(_STEPS))])


_FIRST: list[tuple[float, Callable[[_Draft], _Value]]] = [(4, _matrix), (3, _convolution), (1, _scores)]
_STAGES: list[tuple[float, Callable[[_Draft, _Value], _Value]]] = [(6, _product), (2, _epilogue), (1, _square)]


def generate_matrix_program(seed: int, number: int, target: str | None = None) -> Recipe:
    """Program ``number`` of a run with this seed, on the emulator unless another target is named."""
    source = source_of(seed, number)
    draft = _Draft(source, source.choice([*_HALVES, *_HALVES, ScalarType.INT8]))
    value = source.weighted(_FIRST)(draft)
    for _ in range(source.choice([0, 1, 1, 2, 3])):
        value = source.weighted(_STAGES)(draft, value)
    while not any("+=!" in statement for statement in draft.statements):
        value = _product(draft, value)
    results = [own.name for own in draft.values[:-1] if source.chance(0.2)] + [draft.values[-1].name]
    source.shuffle(results)
    head = ", ".join(f"{own.type}({', '.join(map(str, own.extents))}) {name}" for name, own in draft.arguments.items())
    body = "\n".join(f"  {statement}" for statement in draft.statements)
    sizes = {name: size for name, size in draft.sizes.items() if name in draft.declared}
    return Recipe(
        seed=seed,
        number=number,
        text=f"def f({head}) -> ({', '.join(results)}) {{\n{body}\n}}",
        name="f",
        sizes=tuple(sizes.items()),
        arguments=tuple(draft.arguments.items()),
        outputs=tuple((name, source.choice(WRITABLE_LAYOUTS)) for name in results if source.chance(0.1)),
        shared=(),
        options=_options(source),
        target=target or "emulator",
        opened=_opened(source, sizes),
    )


def _opened(source: Source, sizes: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Now and then sizes that stay symbolic, up to what they are or to more."""
    if not source.chance(0.2):
        return ()
    return tuple((name, sizes[name] + source.choice([0, 1, 16])) for name in source.some(list(sizes), 0.3))


def _options(source: Source) -> tc.GpuOptions:
    """Any, with a softmax whose weights are divided behind the next product or before."""
    return replace(_mapping(source), numerics=tc.Numerics(rescaled_softmax=source.chance(0.5)))


def _mapping(source: Source) -> tc.GpuOptions:
    """The default options, any, or tiles of whole warps with any others."""
    if source.chance(0.3):
        return tc.GpuOptions()
    options = draw_gpu_options(source)
    if source.chance(0.3):
        return options
    along_rows, along_columns = source.choice([1, 1, 2, 4]), source.choice([1, 1, 2])
    rows, columns = 16 * along_rows * source.choice([1, 1, 2]), 8 * along_columns * source.choice([1, 2, 4])
    sizes = source.choice([(rows, columns), (rows, columns, source.choice([0, 16, 32, 48])), (1, rows, columns, 32)])
    tile = None if source.chance(0.5) else sizes
    block = (4, 8 * along_rows, along_columns) if tile is not None and source.chance(0.7) else None
    schedule = replace(options.schedule, tile=tile)
    cores = source.choice([own for own in tc.TensorCores if own is not tc.TensorCores.NONE])
    room = source.choice([None, None, options.shared_memory])
    return replace(options, schedule=schedule, block=block, grid=None, tensor_cores=cores, shared_memory=room)
