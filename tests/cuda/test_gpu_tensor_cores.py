"""Products by matrix instructions on a GPU, against the oracle: ``pytest -m gpu``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.reference.compare import compare
from tests.cuda.frameworks import FRAMEWORKS
from tests.polyhedral.gpu.tensor.attention import EARLY, LATE
from tests.polyhedral.gpu.tensor.products import LAYOUTS, LINEAR, TYPES, bytes_of, of_bytes, operands, product

pytestmark = pytest.mark.gpu

# Without borders, with some in every direction, and with rows that no matrix instruction of four warps takes.
SIZES = ((256, 256, 256), (264, 520, 208), (257, 131, 77))
SMALL_TILES = tc.GpuOptions(
    tc.ScheduleOptions(tile=(64, 64, 64)), shared_memory=64 << 10, tensor_cores=tc.TensorCores.STREAMS
)
BATCHED = "def f({0}(B,M,K) x, {0}(B,K,N) y) -> (C) {{ C(b,m,n) +=! x(b,m,k) * y(b,k,n) }}"


def agrees(
    definition: tc.Comprehension,
    arrays: tuple[npt.NDArray[Any], ...],
    options: tc.GpuOptions,
    products: tc.Products = tc.Products.EXACT,
) -> None:
    """The results are the oracle's, and the same in every call."""
    FRAMEWORKS["own"].require()
    given = tuple(map(tc.to_device, arrays))
    found: list[Any] = [definition(*given, target="cuda", options=options) for _ in range(3)]
    (expected,) = definition.oracle(*arrays, products=products).values()
    first, *others = (np.asarray(own.numpy()) for own in found)
    comparison = compare(expected, first)
    assert comparison.ok, str(comparison)
    assert all(np.array_equal(first, other, equal_nan=first.dtype.kind == "f") for other in others)


@pytest.mark.parametrize("cores", [tc.TensorCores.WARPS, tc.TensorCores.WARPGROUPS, tc.TensorCores.STREAMS])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("type", TYPES)
def test_products_of_halves(type: str, layout: str, sizes: tuple[int, int, int], cores: tc.TensorCores) -> None:
    agrees(product(layout, type), operands(layout, type, *sizes), tc.GpuOptions(tensor_cores=cores))


@pytest.mark.parametrize(("sizes", "stages"), [((70, 72, 208), 2), ((320, 136, 256), 3), ((64, 64, 320), 4)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_streams_of_small_tiles(layout: str, sizes: tuple[int, int, int], stages: int) -> None:
    agrees(product(layout, "bfloat16"), operands(layout, "bfloat16", *sizes), replace(SMALL_TILES, stages=stages))


@pytest.mark.parametrize("sizes", [(256, 256, 256), (130, 90, 333)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")])
def test_products_of_bytes(left: str, right: str, layout: str, sizes: tuple[int, int, int]) -> None:
    agrees(of_bytes(layout, left, right), bytes_of(layout, left, right, *sizes), tc.GpuOptions())


@pytest.mark.parametrize("sizes", [(256, 256, 256), (70, 66, 55)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("products", [tc.Products.TF32, tc.Products.THREE_TF32])
def test_products_of_rounded_numbers(products: tc.Products, layout: str, sizes: tuple[int, int, int]) -> None:
    random = np.random.default_rng(0)
    arrays = tuple(random.standard_normal(own.shape).astype(np.float32) for own in operands(layout, "float16", *sizes))
    options = tc.GpuOptions(numerics=tc.Numerics(products=products))
    agrees(product(layout, "float"), arrays, options, products)


@pytest.mark.parametrize("cores", [tc.TensorCores.WARPS, tc.TensorCores.WARPGROUPS, tc.TensorCores.STREAMS])
@pytest.mark.parametrize("type", TYPES)
def test_products_with_more_in_their_kernel(type: str, cores: tc.TensorCores) -> None:
    options, random = tc.GpuOptions(tensor_cores=cores), np.random.default_rng(0)

    def halves(*shapes: tuple[int, ...]) -> tuple[npt.NDArray[Any], ...]:
        return tuple(random.standard_normal(shape).astype(TYPES[type]) for shape in shapes)

    for m, n, k in ((256, 512, 320), (200, 136, 144)):
        agrees(tc.define(LINEAR.format(type)).single(), halves((m, k), (n, k), (n,), (m, n)), options)
    for b, m, n, k in ((5, 200, 72, 128), (8, 512, 256, 512)):
        agrees(tc.define(BATCHED.format(type)).single(), halves((b, m, k), (b, k, n)), options)


@pytest.mark.parametrize("sizes", [(3, 128, 192, 64, 64), (2, 100, 77, 40, 72), (4, 256, 256, 128, 128)])
@pytest.mark.parametrize("text", [LATE, EARLY], ids=["late", "early"])
@pytest.mark.parametrize("type", TYPES)
def test_attention(type: str, text: str, sizes: tuple[int, int, int, int, int]) -> None:
    b, n, m, d, e = sizes
    random = np.random.default_rng(0)
    arrays = (random.standard_normal(shape).astype(TYPES[type]) for shape in ((b, n, d), (b, m, d), (b, m, e)))
    agrees(tc.define(text.format(type)).single(), tuple(arrays), tc.GpuOptions())
