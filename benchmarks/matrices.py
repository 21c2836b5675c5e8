"""``python -m benchmarks matrices``: products by matrix instructions on a GPU, beside PyTorch's.

Every result is compared with PyTorch's in float64 before it is timed.  Calls are timed by events of the GPU, with cold
caches, ours and PyTorch's by turns.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import tc
from benchmarks.measuring.machine import commit, describe_gpu
from benchmarks.predicting.measured import Run, Times

# Of results, by the type of operands: how far from those in float64, in norms.
_BOUNDS: Final = MappingProxyType({"bfloat16": 1e-2, "float16": 2e-3, "float": 1e-3, "int8": 0.0})
_PRODUCTS: Final = MappingProxyType(
    {
        "AB": "def f({0}(M,K) A, {0}(K,N) B) -> (C) {{ C(m,n) +=! {1}A(m,k){2} * {1}B(k,n){2} }}",
        "ABt": "def f({0}(M,K) A, {0}(N,K) B) -> (C) {{ C(m,n) +=! {1}A(m,k){2} * {1}B(n,k){2} }}",
    }
)
_LINEAR: Final = """def f(bfloat16(M,K) x, bfloat16(N,K) w, bfloat16(N) b, bfloat16(M,N) r) -> (y) {
    s(m,n) +=! x(m,k) * w(n,k)
    y(m,n) = bfloat16(fmax(s(m,n) + float32(b(n)), 0.0) + float32(r(m,n))) }"""
_ATTENTION: Final = """def f(bfloat16(B,N,D) q, bfloat16(B,M,D) k, bfloat16(B,M,E) v) -> (o) {
    t(b,n,m) +=! q(b,n,d) * k(b,m,d)
    h(b,n) max=! 0.125 * t(b,n,m)
    e(b,n,m) = bfloat16(exp(0.125 * t(b,n,m) - h(b,n)))
    s(b,n) +=! float32(e(b,n,m))
    u(b,n,f) +=! float32(e(b,n,m)) * float32(v(b,m,f))
    o(b,n,f) = bfloat16(u(b,n,f) / s(b,n)) }"""
_CONVOLUTION: Final = """def f(bfloat16(N,C,H,W) x, bfloat16(F,C,KH,KW) w) -> (y) {
    y(n,f,h,v) +=! x(n,c,h+i,v+j) * w(f,c,i,j) }"""
# Rows, columns, steps.
_SIZES: Final = (
    *((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192)),
    *((4096, 4096, 512), (16384, 512, 512), (128, 16384, 4096)),
)
_KINDS: Final = MappingProxyType(
    {"warps": tc.TensorCores.WARPS, "groups": tc.TensorCores.WARPGROUPS, "streams": tc.TensorCores.STREAMS}
)


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """A definition, the type and the shapes of its arguments, options, and what PyTorch calls for it."""

    name: str
    text: str
    type: str
    shapes: tuple[tuple[int, ...], ...]
    options: tc.GpuOptions
    peer: Callable[..., Any]

    @property
    def definition(self) -> tc.Comprehension:
        """Ready to be called."""
        return tc.define(self.text).single()


def cases() -> Iterator[MatrixCase]:
    """All of them."""
    for (m, n, k), (kind, cores) in ((sizes, kind) for sizes in _SIZES for kind in _KINDS.items()):
        options = tc.GpuOptions(tensor_cores=cores)
        yield _product(f"{kind}-ABt-{m}-{n}-{k}", "ABt", "bfloat16", (m, n, k), options)
    for kind, cores in _KINDS.items():
        options = tc.GpuOptions(tensor_cores=cores)
        yield _product(f"{kind}-AB-4096-4096-4096", "AB", "bfloat16", (4096, 4096, 4096), options)
        square = (2048, 2048)
        yield MatrixCase(
            f"linear-{kind}-2048", _LINEAR, "bfloat16", (square, square, (2048,), square), options, _linear
        )
    for size in (1024, 4096):
        yield _product(f"int8-ABt-{size}", "ABt", "int8", (size, size, size), tc.GpuOptions())
        for products in (tc.Products.TF32, tc.Products.THREE_TF32):
            options = tc.GpuOptions(numerics=tc.Numerics(products=products))
            yield _product(f"{products.value}-ABt-{size}", "ABt", "float", (size, size, size), options)
    for heads, length, width in ((64, 1024, 64), (16, 4096, 128), (16, 4096, 64), (128, 512, 64)):
        name, shape = f"attention-{heads}-{length}-{width}", (heads, length, width)
        yield MatrixCase(name, _ATTENTION, "bfloat16", (shape,) * 3, tc.GpuOptions(), _attention)
    for images, channels, side, filters in ((32, 64, 58, 64), (32, 256, 16, 256)):
        shapes = ((images, channels, side, side), (filters, channels, 3, 3))
        yield MatrixCase(f"conv-bf16-{channels}", _CONVOLUTION, "bfloat16", shapes, tc.GpuOptions(), _convolution)


def _product(name: str, layout: str, type: str, sizes: tuple[int, int, int], options: tc.GpuOptions) -> MatrixCase:
    m, n, k = sizes
    widened = ("int32(", ")") if type == "int8" else ("", "")
    shapes = ((m, k), (k, n) if layout == "AB" else (n, k))
    peer = (lambda a, b: a @ b) if layout == "AB" else _turned
    return MatrixCase(name, _PRODUCTS[layout].format(type, *widened), type, shapes, options, peer)


def _turned(a: Any, b: Any) -> Any:
    import torch

    return torch._int_mm(a, b.mT) if a.dtype is torch.int8 else a @ b.mT


def _linear(x: Any, w: Any, b: Any, r: Any) -> Any:
    import torch

    return torch.relu(torch.nn.functional.linear(x, w, b)) + r


def _attention(q: Any, k: Any, v: Any) -> Any:
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=0.125)[0]


def _convolution(x: Any, w: Any) -> Any:
    import torch

    return torch.nn.functional.conv2d(x, w)


def arguments(case: MatrixCase, device: str, seed: int = 0) -> tuple[Any, ...]:
    """Random tensors of PyTorch."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    if case.type == "int8":
        made = (torch.randint(-128, 128, own, device=device, generator=generator) for own in case.shapes)
        return tuple(own.to(torch.int8) for own in made)
    type = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float": torch.float32}[case.type]
    return tuple(torch.randn(own, device=device, generator=generator).to(type) for own in case.shapes)


def deviation(case: MatrixCase, found: Any, given: Sequence[Any]) -> float:
    """How far a result is from PyTorch's in float64, in norms; not-a-number never passes."""
    expected = case.peer(*(own.double() for own in given))
    return float((found.double() - expected).norm() / expected.norm())


def measure(names: Sequence[str], target: str, seconds: float, show: Callable[[str], None]) -> Run:
    """Measures the cases of these names, or all.  ValueError for an unknown name, RuntimeError for a wrong result."""
    chosen = [case for case in cases() if not names or case.name in names]
    if missing := sorted(set(names) - {case.name for case in chosen}):
        raise ValueError(f"no case is called {missing[0]!r}; known: {', '.join(case.name for case in cases())}")
    gpu = describe_gpu()
    machine = f"{gpu.model} ({gpu.multiprocessors} multiprocessors, {gpu.driver}, {gpu.compiler})"
    how = f"medians of {seconds} seconds of calls between events of the GPU, with cold caches, by turns with PyTorch's"
    run = Run(commit() or "", gpu.model, machine, how, (), (), ())
    for case in chosen:
        times = _times(case, target, seconds)
        peer = f"{times.torch:10.1f} {times.torch / times.ours:6.2f}" if times.torch else ""
        show(f"{case.name:34} {times.ours:10.1f} {peer}")
        run = replace(run, matrices=(*run.matrices, times))
    return run


def _times(case: MatrixCase, target: str, seconds: float) -> Times:
    import torch

    from tc.tuner.trial.cuda_clock import event_times

    definition, given = case.definition, arguments(case, "cuda")
    torch.backends.cuda.matmul.allow_tf32 = case.options.numerics.products is tc.Products.TF32
    out: Any = definition(*given, target=target, options=case.options)
    found = deviation(case, out, given)
    if math.isnan(found) or found > _BOUNDS[case.type]:
        raise RuntimeError(f"{case.name} is wrong: {found:.1e} off PyTorch's result in float64")
    ours = event_times(lambda: definition(*given, out=out, target=target, options=case.options), seconds)
    peer = event_times(lambda: case.peer(*given), seconds)
    return Times(case.name, *(round(1e6 * statistics.median(own), 2) for own in (ours, peer)))
