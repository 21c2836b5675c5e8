"""Random small modules as texts: layers, functions, views, changes in place, several types, outputs that share memory.

Each statement is run while it is drawn: what eager PyTorch refuses, and what makes large numbers, is left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import torch

from tc.base.frozen import frozen

_LARGEST: Final = 64.0
_MOST_ELEMENTS: Final = 2000
_FLOATING: Final = ("float32", "float64", "float16", "bfloat16")
_INDEX: Final = 3  # indices that come in are below it

# Of one floating value `{x}`, or `{u}` without equal elements; `{r}` is a small number, `{d}` and `{e}` are dimensions,
# `{n}` is an extent.
UNARY: Final = """torch.relu({x})|torch.tanh({x})|F.gelu({x})|{x}.abs()|torch.sigmoid({x})|torch.exp(-{x}.abs())
torch.log1p({x}.abs())|{x} * {r} + 1|-{x}|{x} ** 2|torch.sin({x})|F.softplus({x})|F.silu({x})|F.hardswish({x})
{r} - {x}|F.leaky_relu({x}, 0.1)|F.elu({x})|{x}.clamp(-1, {r})|torch.rsqrt({x} * {x} + 1)|torch.erf({x})
{x}.square()|F.mish({x})|F.dropout({x}, 0.3, self.training)|{x}.clone()|{x}.detach()|{x}.contiguous()
torch.where({x} > {r}, {x}, 0.3)|{x}.masked_fill({x} > {r}, 0.25)|torch.nan_to_num({x})|{x} / 3
{x}.to(torch.float32)|{x}.to(torch.float64)|F.hardtanh({x})|{x}.to(torch.bfloat16)|{x}.to(torch.float16)
1 / ({x}.abs() + 1)|torch.addcmul({x}, {x}, {x}, value={r})|F.relu6({x})|torch.log_softmax({x}, {d})
torch.softmax({x}, {d})|torch.cumsum({x}, {d})|F.normalize({x}, dim={d})|{x}.float().half()
torch.lerp({x}, {x} * 2, {r})|{x}.reciprocal().clamp(-2, 2)|F.logsigmoid({x})|torch.logit(torch.sigmoid({x}))"""
REDUCTIONS: Final = """{x}.sum({d})|{x}.mean({d}, keepdim=True)|{x}.amax({d})|{x}.amin({d}, keepdim=True)
{x}.var({d})|torch.logsumexp({x}, {d})|torch.linalg.vector_norm({x}, dim={d})|{u}.max({d})[0]|{x}.sum()|{x}.mean()
{x}.prod({d})|{x}.std({d}, unbiased=False)|{u}.sort({d})[0]|torch.topk({u}, 2, {d})[0]|({x} > {r}).float().mean({d})
{u}.median({d})[0]|torch.cummax({u}, {d})[0]|{x}.norm(dim={d}, keepdim=True)|{x}.aminmax(dim={d})[1]
torch.cumprod({x}, {d})"""
VIEWS: Final = """{x}.transpose({d}, {e})|{x}.flip({d})|{x}.roll(1, {d})|{x}.unsqueeze({d})|{x}.squeeze()
{x}.flatten()|{x}.select({d}, 0)|{x}.narrow({d}, 1, 1)|{x}[..., ::2]|{x}[1:]|{x}[None]|{x}.chunk(2, {d})[1]
{x}.movedim({d}, {e})|{x}.flatten({d}, {e})|{x}.unfold({d}, 2, 1)|{x}.diagonal()|{x}.expand(2, *{x}.shape)
{x}.reshape(-1, {n})|{x}.mT|{x}.view(-1)|{x}.repeat_interleave(2, {d})|{x}.repeat(2, *[1] * {x}.dim())
F.pad({x}, (1, 0))|F.pad({x}, (1, 2), value={r})|{x}.T|F.pad({x}, (1, 1), mode="reflect")|torch.tril({x})
{x}.unbind({d})[-1]|{x}.split([1, {n} - 1], {d})[1]|{x}.view_as({x})
{x}.contiguous(memory_format=torch.channels_last)|{x}.unflatten({d}, (-1, 2))|{x}.swapaxes({d}, {e}).contiguous()
F.interpolate({x}, scale_factor=2)|{x}[torch.tensor([0, 0])]|{x}.index_select({d}, torch.tensor([0]))
{x}.expand_as({x})"""
# Of two floating values.
BINARY: Final = """{x} + {y}|{x} - {y}|{x} * {y}|torch.maximum({x}, {y})|{x} / ({y}.abs() + 1)|{x} @ {y}
{x} @ {y}.mT|torch.where({x} > {y}, {x}, {y})|torch.lerp({x}, {y}, {r})|torch.add({x}, {y}, alpha={r})
torch.cat([{x}, {y}], {d})|torch.stack([{x}, {y}], {d})|torch.hypot({x}, {y})|torch.outer({x}, {y})
({x} > {y}).to({x}.dtype)|{x}.expand_as({y})|torch.minimum({x}, {y} + {r})|F.mse_loss({x}, {y})
F.smooth_l1_loss({x}, {y}, reduction="none")|F.cosine_similarity({x}, {y})|torch.atan2({x}, {y}.abs() + 1)
torch.cdist({x}, {y})|F.linear({x}, {y})|torch.cat([{y}, {x}, {y}])|{x}.view_as({y})
torch.einsum("...i,...i->...", {x}, {y})|torch.baddbmm({x}, {x}, {y})|F.scaled_dot_product_attention({x}, {y}, {y})"""
# Of a floating value and of integers `{i}` that are indices.
INDEXED: Final = """{x}[{i}]|{x}.index_select(0, {i}.flatten())|F.one_hot({i}, 4).to({x}.dtype)|{i} * {x}.sum()
{x}.take({i})|torch.zeros_like({x}).index_add(0, {i}.flatten()[:1], {x}[:1])|torch.gather({x}, 0, {i})
{i}.to({x}.dtype) / 3"""
# Statements that change the value `{v}`, which is a copy.
CHANGES: Final = """{v}.mul_({r})|{v}.add_({y})|{v}[0] = 1|{v}[..., 0] += {r}|{v}[1:].mul_(2)|{v}.relu_()
{v}.T.add_(1)|{v}.copy_({y})|{v}.masked_fill_({v} > {r}, 0.5)|{v}.view(-1)[::2].add_({r})
{v}.transpose(0, -1).mul_({r})|{v}.zero_()|{v}.clamp_(-1, 1)|{v}.index_add_(0, torch.tensor([0]), {v}[:1].clone())
{v}.addcmul_({y}, {y})|{v}.select(0, -1).fill_({r})|{v}.index_fill_(0, torch.tensor([0]), {r})|{v}.sigmoid_()
{v}[{v} > {r}] = 0.1|{v}.unsqueeze(0).sub_(1)|{v}.div_(2).neg_()|{v}.lerp_({y}, {r})
{v}.narrow(0, 0, 1).copy_({y}[:1])|{v}.t_().mul_(2)|{v}.diagonal().zero_()|{v}.scatter_(0, {i}, {r})
{v}.index_put_((torch.tensor([0, 0]),), {v}[:1].clone(), accumulate=True)|{v}.cumsum_(0)|{v}.squeeze_().add_(1)"""
# Layers by the number of dimensions that they take, 0 for any; `{n}` is the last extent, `{c}` the second.
LAYERS: Final = {
    0: """Linear({n}, 5)|Linear({n}, 3, bias=False)|LayerNorm({n})|PReLU()|LayerNorm({n}, elementwise_affine=False)
    RMSNorm({n})|Dropout(0.2)|Softmin(-1)|GLU()|Threshold(0.1, 0.2)""",
    2: "BatchNorm1d({c})|GroupNorm(1, {c})|BatchNorm1d({c}, affine=False)|BatchNorm1d({c}, track_running_stats=False)",
    3: """Conv1d({c}, 4, 2)|BatchNorm1d({c})|InstanceNorm1d({c}, affine=True)|MaxPool1d(2)|AvgPool1d(2, 1)
    GRU({n}, 3)|LSTM({n}, 3, batch_first=True)|ConvTranspose1d({c}, 2, 3, stride=2)|RNN({n}, 4)
    MultiheadAttention({n}, 1)|AdaptiveAvgPool1d(2)|TransformerEncoderLayer({n}, 1, 4, 0.0)
    Conv1d({c}, {c}, 3, padding="same", groups={c})""",
    4: """Conv2d({c}, 3, 2)|Conv2d({c}, 4, 3, padding=1, stride=2)|BatchNorm2d({c})|MaxPool2d(2, 1)|AvgPool2d(2)
    AdaptiveAvgPool2d(1)|Upsample(scale_factor=2, mode="bilinear")|ConvTranspose2d({c}, 2, 2)|InstanceNorm2d({c})
    Conv2d({c}, {c}, 3, padding=1, groups={c})|GroupNorm(1, {c})|AdaptiveMaxPool2d((2, 1))|PixelUnshuffle(2)
    Dropout2d(0.3)|ReflectionPad2d(1)|ZeroPad2d((1, 0, 2, 1))
    Conv2d({c}, 2, 2, dilation=2, padding_mode="circular", padding=1)""",
}
_TUPLES: Final = ("GRU", "LSTM", "RNN", "MultiheadAttention")


def _items(text: str) -> list[str]:
    return [item.strip() for line in text.splitlines() for item in line.split("|")]


@frozen
class Given:
    """A tensor that comes in: ``layout`` is an expression of a contiguous tensor `x` of ``shape``."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    layout: str
    learned: bool

    def make(self, generator: torch.Generator) -> torch.Tensor:
        """One with fresh numbers: multiples of 1/16 around 0, or indices."""
        if self.dtype is torch.int64:
            x = torch.randint(0, _INDEX, self.shape, generator=generator)
        else:
            x = (torch.randn(self.shape, generator=generator) * 16).round().div(16).to(self.dtype)
        found: torch.Tensor = eval(self.layout, {"x": x, "torch": torch})  # it is one of a few
        return found.detach().requires_grad_(self.learned)


@frozen
class Drawn:
    """``layers``: expressions of modules by name.  ``body``: statements.  ``results``: names or expressions."""

    given: tuple[Given, ...]
    layers: tuple[tuple[str, str], ...]
    body: tuple[str, ...]
    results: tuple[str, ...]
    mode: str  # train, eval or no_grad

    @property
    def text(self) -> str:
        """The module as Python."""
        layers = [f"        self.{name} = {layer}" for name, layer in self.layers]
        arguments = ", ".join(f"x{at}" for at in range(len(self.given)))
        body = [f"        {line}" for line in self.body]
        lines = [
            "class Drawn(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *layers,
            f"    def forward(self, {arguments}):",
            *body,
            f"        return {', '.join(self.results)}{',' if len(self.results) == 1 else ''}",
        ]
        return "\n".join(lines)


LAYOUTS: Final = ("x", "x", "x", "x.mT.contiguous().mT", "x.repeat_interleave(2, -1)[..., ::2]", "x[:1].expand_as(x)")


def drawn(seed: int) -> Drawn:
    """The module of a seed."""
    return _Drawing(seed).draw()


class _Drawing:
    """The values so far, by name, as eager PyTorch computes them."""

    def __init__(self, seed: int) -> None:
        self.chosen: Final = random.Random(seed)
        self.mode: Final = self.chosen.choice(("train", "train", "eval", "no_grad"))
        self.type: Final = getattr(torch, self.chosen.choices(_FLOATING, (8, 4, 1, 1))[0])
        self.given: Final[list[Given]] = []
        self.layers: Final[list[tuple[str, str]]] = []
        self.body: Final[list[str]] = []
        self.dropouts: list[str] = []
        self.module: Final = torch.nn.Module()
        self.module.train(self.mode == "train")
        self.names: Final[dict[str, Any]] = {"torch": torch, "F": torch.nn.functional, "self": self.module}

    def draw(self) -> Drawn:
        """Inputs, statements and results."""
        generator = torch.Generator().manual_seed(self.chosen.randrange(1 << 30))
        rank = self.chosen.choice((1, 2, 2, 3, 4, 4))
        for at in range(self.chosen.choice((1, 2, 2, 3))):
            self.given.append(self._given(rank if self.chosen.random() < 0.7 else self.chosen.randint(0, 4)))
            self.names[f"x{at}"] = self.given[-1].make(generator)
        with torch.set_grad_enabled(self.mode != "no_grad"):
            for _ in range(self.chosen.choice((3, 5, 8, 12))):
                for _ in range(9):
                    if self._draw():
                        break
        values = [name for name in self.names if name[0] in "xv"]
        kept = self.chosen.sample(values, min(len(values), self.chosen.choice((1, 1, 2, 3))))
        last = values[-1]
        extra = self.chosen.choice(([], [], [f"{last}.shape[-1:]"], [f"{last}.view(-1)[:2]"], [f"{last}.detach()"]))
        # PyTorch's partitioner leaves out what nothing uses, and random numbers after it would be others.
        drawing = ("F.dropout(", *(f"self.{name}(" for name in self.dropouts))
        drawn = [line.partition(" ")[0] for line in self.body if any(text in line for text in drawing)]
        results = [one for one in (*dict.fromkeys((last, *kept, *drawn)), *extra) if self._works(one)]
        return Drawn(tuple(self.given), tuple(self.layers), tuple(self.body), tuple(results), self.mode)

    def _given(self, rank: int) -> Given:
        shape = tuple(self.chosen.choice((1, 2, 3, 4, 4, 5, 6)) for _ in range(rank))
        if self.chosen.random() < 0.15:
            return Given(shape, torch.int64, "x", False)
        layouts = [*LAYOUTS, *["x.contiguous(memory_format=torch.channels_last)"] * 3] if rank == 4 else list(LAYOUTS)
        layout = self.chosen.choice(layouts) if rank >= 2 else "x"
        mixed = self.chosen.random() < 0.1
        dtype = getattr(torch, self.chosen.choice(_FLOATING)) if mixed else self.type
        return Given(shape, dtype, layout, self.mode != "no_grad" and self.chosen.random() < 0.6)

    def _draw(self) -> bool:
        """Adds a statement, if the one that is drawn works."""
        kind = self.chosen.choices(
            (self._layer, self._change, self._change_of_input, *(self._formula(t) for t in _FORMULAS)),
            (5, 2, 0.5, 4, 1, 3, 3, 1),
        )[0]
        return kind()

    def _formula(self, text: str) -> Callable[[], bool]:
        return lambda: self._assign(self._filled(self.chosen.choice(_items(text))))

    def _values(self, floating: bool = True) -> list[str]:
        every = [name for name, one in self.names.items() if isinstance(one, torch.Tensor)]
        return [name for name in every if self.names[name].is_floating_point() is floating]

    def _filled(self, text: str) -> str | None:
        """The text with names and numbers; the last values are likelier."""
        floating, whole = self._values(), self._values(floating=False)
        if not floating or ("{i}" in text and not whole):
            return None
        x, y = self.chosen.choice(floating[-3:]), self.chosen.choice(floating)
        tensor = self.names[x]
        rank = max(tensor.dim(), 1)
        d = self.chosen.randrange(rank)
        put: dict[str, object] = {"x": x, "y": y, "d": d - rank if self.chosen.random() < 0.3 else d, "v": "{v}"}
        put |= {"e": self.chosen.randrange(d, rank), "n": tensor.shape[d] if tensor.dim() else 1}
        # No two elements are equal, of which either could be chosen.
        put["u"] = f"({x} + torch.linspace(0, 0.37, {tensor.numel()}).view({x}.shape).to({x}.dtype))"
        return text.format(**put, r=self.chosen.choice((0.5, 0.25, -0.75)), i=self.chosen.choice(whole or ["_"]))

    def _assign(self, expression: str | None, *changes: str) -> bool:
        name = f"v{sum(key[0] == 'v' for key in self.names)}"
        if expression is None:
            return False
        lines = [f"{name} = {expression}", *changes]
        before = torch.get_rng_state()
        try:
            exec("\n".join(lines), self.names)  # it is what is drawn
            value = self.names.get(name)
            good = isinstance(value, torch.Tensor) and _is_tame(value)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, AssertionError):
            good = False
        torch.set_rng_state(before)
        if good:
            self.body.extend(lines)
        else:
            self.names.pop(name, None)
        return good

    def _change(self) -> bool:
        name = f"v{sum(key[0] == 'v' for key in self.names)}"
        source, change = self._filled("{x}.clone()"), self._filled(self.chosen.choice(_items(CHANGES)))
        return change is not None and self._assign(source, change.replace("{v}", name))

    def _change_of_input(self) -> bool:
        """An input that is no leaf of gradients is changed, and so are views of it."""
        inputs = [f"x{at}" for at, one in enumerate(self.given) if not one.learned and one.dtype.is_floating_point]
        inputs = [name for name in inputs if "expand" not in self.given[int(name[1:])].layout]
        change = self._filled(self.chosen.choice(("{v}.mul_({r})", "{v}[..., 0] = {r}", "{v}.view(-1)[:2].add_(1)")))
        if not inputs or change is None:
            return False
        name = self.chosen.choice(inputs)
        return self._assign(f"{name} * 1", change.replace("{v}", name))

    def _layer(self) -> bool:
        values = self._values()
        if not values:
            return False
        x = self.chosen.choice(values[-3:])
        tensor = self.names[x]
        if not tensor.dim():
            return False
        text = self.chosen.choice(_items(LAYERS.get(self.chosen.choice((0, tensor.dim())), LAYERS[0])))
        c = tensor.shape[1] if tensor.dim() > 1 else 1
        layer = f"torch.nn.{text.format(n=tensor.shape[-1], c=c)}.to({tensor.dtype})"
        name = f"l{len(self.layers)}"
        try:
            own = eval(layer, self.names).train(self.mode == "train")  # it is what is drawn
        except (RuntimeError, ValueError, AssertionError, ZeroDivisionError):
            return False
        setattr(self.module, name, own)
        operands = f"{x}, {x}, {x}" if "Multihead" in text else x
        whole = f"self.{name}({operands})"
        if not self._assign(f"{whole}[0]" if text.startswith(_TUPLES) else whole):
            return False
        self.layers.append((name, layer))
        self.dropouts += [name] if "Dropout" in layer else []
        return True

    def _works(self, expression: str) -> bool:
        try:
            eval(expression, self.names)  # it is what is drawn
        except RuntimeError:
            return False
        return True


_FORMULAS: Final = (UNARY, REDUCTIONS, VIEWS, BINARY, INDEXED)


def _is_tame(value: torch.Tensor) -> bool:
    if value.numel() > _MOST_ELEMENTS or value.layout is not torch.strided or value.is_complex():
        return False
    wide = value.detach().double()
    return bool(wide.isfinite().all()) and (not wide.numel() or float(wide.abs().max()) < _LARGEST)
