"""Kernels of image processing and learning on a photograph: timed beside NumPy, checked, proven, and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import tc
from benchmarks.measuring.timing import machine, measure
from tc.base.counted import counted
from tc.base.proof import Proof
from tc.reference.compare import compare

Array: TypeAlias = np.ndarray

TEXT = """
def blur(float(H,W) X, float(K) G) -> (O) {
  T(i,j) +=! G(k) * X(i+k,j)
  O(i,j) +=! G(k) * T(i,j+k)
}
def sobel(float(H,W) X) -> (E) {
  DX(i,j) = X(i,j+2) - X(i,j) + 2 * (X(i+1,j+2) - X(i+1,j)) + X(i+2,j+2) - X(i+2,j)
  DY(i,j) = X(i+2,j) - X(i,j) + 2 * (X(i+2,j+1) - X(i,j+1)) + X(i+2,j+2) - X(i,j+2)
  E(i,j) = sqrt(DX(i,j) * DX(i,j) + DY(i,j) * DY(i,j))
}
def maxpool(float(H,W) X) -> (O) {
  O(i,j) max=! X(2*i+p, 2*j+q) where p in 0:2, q in 0:2
}
def layer(float(C,H,W) X, float(F,C,KH,KW) K, float(F) B) -> (O) {
  O(f,i,j) = B(f)
  O(f,i,j) += X(c,i+p,j+q) * K(f,c,p,q)
  O(f,i,j) = fmax(O(f,i,j), 0)
}
def embed(float(E,D) T, int32(B,L) I) -> (O) {
  O(b,d) +=! T(I(b,l),d)
}
def mlp3(float(B,M) I, float(N,M) W1, float(N) B1, float(O,N) W2, float(O) B2, float(P,O) W3, float(P) B3) -> (O3) {
  O1(b,n) = B1(n)
  O1(b,n) += I(b,m) * W1(n,m)
  O1(b,n) = fmax(O1(b,n), 0)
  O2(b,o) = B2(o)
  O2(b,o) += O1(b,n) * W2(o,n)
  O2(b,o) = fmax(O2(b,o), 0)
  O3(b,p) = B3(p)
  O3(b,p) += O2(b,o) * W3(p,o)
  O3(b,p) = fmax(O3(b,p), 0)
}
"""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One kernel: its arguments, and the same computation in NumPy."""

    name: str
    arguments: tuple[Array, ...]
    numpy: Callable[[], Array]


def photograph() -> Array:
    """The portrait that Matplotlib ships, as float32 in 0..1 with shape (height, width, 3)."""
    from matplotlib import cbook, image

    pixels = image.imread(str(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)))
    return np.ascontiguousarray(pixels[..., :3], dtype=np.float32) / np.float32(255)


def edge_filters(count: int) -> Array:
    """Filters (count, 3 colours, 3, 3) that answer to edges in ``count`` directions around the circle."""
    across = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    angles = np.arange(count, dtype=np.float32) * np.float32(2 * np.pi / count)
    turned = np.cos(angles)[:, None, None] * across + np.sin(angles)[:, None, None] * across.T
    return np.repeat(turned[:, None] / np.float32(3), 3, axis=1)


def exhibits(picture: Array) -> tuple[Exhibit, ...]:
    """The kernels, on the photograph or on numbers of the sizes that their users have."""
    random = np.random.default_rng(0)

    def numbers(*shape: int) -> Array:
        return random.standard_normal(shape, np.float32)

    gray = np.ascontiguousarray(picture @ np.array([0.299, 0.587, 0.114], np.float32))
    gauss = np.exp(-0.5 * (np.arange(-5, 6, dtype=np.float32) / 2) ** 2)
    gauss /= gauss.sum()
    channels = np.ascontiguousarray(picture.transpose(2, 0, 1))
    filters, bias = edge_filters(8), np.full(8, -0.05, np.float32)
    table, indices = numbers(100_000, 64), random.integers(0, 100_000, (128, 50), np.int32)
    batch = numbers(128, 128)
    weights = [(numbers(n, m) / np.float32(m) ** 0.5, numbers(n)) for n, m in ((64, 128), (32, 64), (2, 32))]

    def blur() -> Array:
        return np.asarray(sliding_window_view(sliding_window_view(gray, 11, 0) @ gauss, 11, 1) @ gauss)

    def sobel() -> Array:
        x = gray
        dx = x[:-2, 2:] - x[:-2, :-2] + 2 * (x[1:-1, 2:] - x[1:-1, :-2]) + x[2:, 2:] - x[2:, :-2]
        dy = x[2:, :-2] - x[:-2, :-2] + 2 * (x[2:, 1:-1] - x[:-2, 1:-1]) + x[2:, 2:] - x[:-2, 2:]
        return np.asarray(np.sqrt(dx * dx + dy * dy))

    def maxpool() -> Array:
        height, width = gray.shape[0] // 2, gray.shape[1] // 2
        return np.asarray(gray[: 2 * height, : 2 * width].reshape(height, 2, width, 2).max((1, 3)))

    def layer() -> Array:
        windows = sliding_window_view(channels, (3, 3), (1, 2))
        summed: Array = np.einsum("chwpq,fcpq->fhw", windows, filters, optimize=True)
        return np.maximum(summed + bias[:, None, None], 0)

    def mlp3() -> Array:
        values = batch
        for weight, offset in weights:
            values = np.maximum(values @ weight.T + offset, 0)
        return values

    return (
        Exhibit("blur", (gray, gauss), blur),
        Exhibit("sobel", (gray,), sobel),
        Exhibit("maxpool", (gray,), maxpool),
        Exhibit("layer", (channels, filters, bias), layer),
        Exhibit("embed", (table, indices), lambda: table[indices].sum(1)),
        Exhibit("mlp3", (batch, *(array for pair in weights for array in pair)), mlp3),
    )


def run(output: Path) -> None:
    """Print a line for every kernel and draw the pictures into ``output``; SystemExit if a result is wrong."""
    print(machine())
    print(f"{'kernel':8} {'result':>16} {'ours':>10} {'NumPy':>10} {'largest error':>14} {'of bound':>9}  proof")
    definitions = tc.define(TEXT)
    pictures: dict[str, Array] = {}
    wrong: list[str] = []
    for exhibit in exhibits(photograph()):
        comprehension = definitions[exhibit.name]
        result = np.asarray(comprehension(*exhibit.arguments))
        (expected,) = comprehension.oracle(*exhibit.arguments).values()
        comparison = compare(expected, result)
        kernel = comprehension.compile(*exhibit.arguments)
        ours = measure(partial(comprehension, *exhibit.arguments)).median
        numpy = measure(exhibit.numpy).median
        error = float(np.abs(result - expected.values).max())
        verdict = _verdict(kernel.proof) if comparison.ok else f"WRONG: {comparison}"
        shape = "x".join(map(str, result.shape))
        print(
            f"{exhibit.name:8} {shape:>16} {ours * 1e6:7.0f} us {numpy * 1e6:7.0f} us {error:14.2e} "
            f"{comparison.worst:9.3f}  {verdict}"
        )
        pictures[exhibit.name] = result
        if not comparison.ok:
            wrong.append(exhibit.name)
    draw(photograph(), pictures, output)
    if wrong:
        raise SystemExit(f"wrong results: {', '.join(wrong)}")


def _verdict(proof: Proof) -> str:
    return (
        f"proven ({counted(proof.statements, 'statement')}, {counted(proof.conflicts, 'conflict')}, "
        f"{counted(proof.accesses, 'access', 'accesses')})"
    )


def draw(before: Array, after: dict[str, Array], output: Path) -> None:
    """The photograph and what the image kernels made of it, side by side in one PNG."""
    from matplotlib.figure import Figure

    panels = {
        "photograph": before,
        "blur": after["blur"],
        "Sobel edges": after["sobel"],
        "2x2 max-pooling": after["maxpool"],
        "layer, edges to the right": after["layer"][0],
        "layer, edges downwards": after["layer"][2],
    }
    figure = Figure(figsize=(12, 9), layout="constrained")
    for axes, (title, panel) in zip(figure.subplots(2, 3).flat, panels.items(), strict=True):
        axes.imshow(panel, cmap="gray")
        axes.set_title(f"{title}  ({panel.shape[1]}x{panel.shape[0]})")
        axes.set_axis_off()
    output.mkdir(parents=True, exist_ok=True)
    path = output / "demo.png"
    figure.savefig(path, dpi=100)
    print(f"pictures: {path}")
