"""Reductions into elements that several points of the left-hand side share: windows added up, products, remainders."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Array, Case, at, integers, normal, uniform
from tests.comprehensions.formulas import Floats, convolution_gradients


def _overlapped(frames: Floats, step: int) -> Floats:
    """The frames, each ``step`` behind the one before, added up."""
    count, length = frames.shape
    found = np.zeros(step * (count - 1) + length)
    for number, frame in enumerate(frames):
        found[step * number : step * number + length] += frame
    return found


def _image(columns: Floats, step: int) -> Floats:
    """What windows of an image hold, added up where they overlap."""
    channels, kh, kw, rows, width = columns.shape
    found = np.zeros((channels, step * (rows - 1) + kh, step * (width - 1) + kw))
    for y in range(kh):
        for x in range(kw):
            found[:, y : y + step * rows : step, x : x + step * width : step] += columns[:, y, x]
    return found


def _pushed(weight: Floats, gradient: Floats) -> Floats:
    height, width = (a + b - 1 for a, b in zip(gradient.shape[2:], weight.shape[2:], strict=True))
    data = np.zeros((len(gradient), weight.shape[1], height, width))
    return convolution_gradients(data, weight, gradient)[0]


def _diagonals(matrix: Floats) -> Floats:
    rows, columns = matrix.shape
    return np.array([np.trace(matrix, offset) for offset in range(columns - 1, -rows, -1)])


def _lattice(matrix: Floats) -> Floats:
    """Products at ``2 i + 4 j + 1``, and one half between them."""
    rows, columns = matrix.shape
    found = np.full(2 * rows + 4 * columns - 4, 0.5)
    found[1::2] = 1.0
    np.multiply.at(found, 2 * np.arange(rows)[:, None] + 4 * np.arange(columns) + 1, matrix)
    return found


def _greatest_and_least(values: Array) -> tuple[Array, Array]:
    turns = range(3)
    greatest, least = ([reduce(values[turn::3]) for turn in turns] for reduce in (np.max, np.min))
    return np.array(greatest, values.dtype), np.array(least, values.dtype)


def _pairs_of_products(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    product = np.convolve(first, second)
    padded = np.append(product, np.inf) if len(product) % 2 else product
    return product, padded.reshape(-1, 2).min(axis=1)


CASES = (
    Case(
        "overlap_add",
        "inverse of a short-time transform: frames at steps of 2",
        "def overlap_add(float(F,L) a) -> (y) { y(2*f+l) +=! a(f,l) }",
        {"a": normal("F", "L")},
        lambda frames: (_overlapped(frames, 2),),
        at("F L", 400, 64),
        (at("F L", 1, 7), at("F L", 129, 17)),
        terms=("F",),
    ),
    Case(
        "col2im",
        "windows of stride 2, back into an image",
        "def col2im(float(C,KH,KW,P,Q) D) -> (y) { y(c,2*p+kh,2*q+kw) +=! D(c,kh,kw,p,q) }",
        {"D": normal("C", "KH", "KW", "P", "Q")},
        lambda columns: (_image(columns, 2),),
        at("C KH KW P Q", 8, 3, 3, 28, 28),
        (at("C KH KW P Q", 0, 2, 2, 3, 4), at("C KH KW P Q", 1, 2, 2, 1, 1), at("C KH KW P Q", 5, 3, 2, 7, 13)),
        even_sizes=at("C KH KW P Q", 24, 3, 2, 8, 8),
        terms=("KH", "KW"),
    ),
    Case(
        "polynomial_product",
        "a full convolution",
        "def product(float(N) a, float(M) b) -> (y) { y(i+j) +=! a(i) * b(j) }",
        {"a": normal("N"), "b": normal("M")},
        lambda first, second: (np.convolve(first, second),),
        at("N M", 512, 512),
        (at("N M", 1, 1), at("N M", 1, 7), at("N M", 129, 17)),
        terms=("M",),
    ),
    Case(
        "sums_of_diagonals",
        "from the top right to the bottom left, of halves",
        "def diagonals(half(N,M) A) -> (y) { y(i-j+M-1) +=! A(i,j) }",
        {"A": uniform(-1.0, 1.0, "N", "M", dtype="float16")},
        lambda matrix: (_diagonals(matrix),),
        at("N M", 120, 120),
        (at("N M", 1, 1), at("N M", 31, 17)),
        terms=("N",),
    ),
    Case(
        "convolution_data_gradient_pushed",
        "Section 4 of the thesis on Tensor Comprehensions' gradients: as the chain rule gives it",
        """
        def pushed(float(M,C,KH,KW) W1, float(N,M,H,W) d_O) -> (d_I) {
            d_I(n, c, h + kh, w + kw) +=! d_O(n, m, h, w) * W1(m, c, kh, kw)
        }
        """,
        {"W1": normal("M", "C", "KH", "KW"), "d_O": normal("N", "M", "H", "W")},
        lambda weight, gradient: (_pushed(weight, gradient),),
        at("N C M H W KH KW", 2, 4, 8, 14, 14, 3, 3),
        (at("N C M H W KH KW", 1, 1, 1, 1, 1, 1, 1), at("N C M H W KH KW", 2, 3, 5, 7, 11, 3, 2)),
        even_sizes=at("N C M H W KH KW", 2, 24, 8, 8, 8, 3, 3),
        terms=("M", "KH", "KW"),
    ),
    Case(
        "greatest_and_least_by_remainder",
        "three at a time, of integers",
        "def turns(int32(N) a) -> (y, z) { y(i%3) max=! a(i)  z(i%3) min=! a(i) }",
        {"a": integers(-100, 100, "N")},
        _greatest_and_least,
        at("N", 3000),
        (at("N", 3), at("N", 131)),
    ),
    Case(
        "products_on_a_lattice",
        "an image with holes, which another statement fills",
        """
        def lattice(float(N,M) A) -> (y) {
            y(2*i+4*j+1) *=! A(i,j)
            y(2*i) = 0.5 where i in 0:N+2*M-2
        }
        """,
        {"A": uniform(0.5, 1.5, "N", "M", dtype="float32")},
        lambda matrix: (_lattice(matrix),),
        at("N M", 120, 12),
        (at("N M", 2, 1), at("N M", 2, 2), at("N M", 33, 9)),
        even_sizes=at("N M", 120, 9),
        terms=("M",),
    ),
    Case(
        "pairs_of_products",
        "a temporary that is one reduction's result and another's operand, through a definition of its own",
        """
        def product(double(N) a, double(M) b) -> (c) { c(i+j) +=! a(i) * b(j) }
        def pairs(double(N) a, double(M) b) -> (y, z) {
            y = product(a, b)
            z(i/2) min=! y(i)
        }
        """,
        {"a": normal("N", dtype="float64"), "b": normal("M", dtype="float64")},
        _pairs_of_products,
        at("N M", 100, 30),
        (at("N M", 1, 1), at("N M", 2, 1), at("N M", 31, 9)),
        even_sizes=at("N M", 120, 9),
        definition="pairs",
        terms=("M",),
    ),
)
