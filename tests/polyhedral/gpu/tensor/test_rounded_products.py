"""Products of float32 numbers by matrix instructions, with factors rounded to 11 bits, or to sums of two of those."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.reference.compare import compare
from tc.targets.machine import GpuMachine
from tests.polyhedral.gpu.tensor.products import LAYOUTS, multiplies
from tests.turns import every, one_in

ROUNDED = (tc.Products.TF32, tc.Products.THREE_TF32)


def product(layout: str) -> tc.Comprehension:
    a, b, term = LAYOUTS[layout]
    return tc.define(f"def f(float{a}, float{b}) -> (C) {{ C(m,n) +=! {term} }}").single()


def operands(layout: str, m: int, n: int, k: int) -> tuple[npt.NDArray[np.float32], ...]:
    random, sizes = np.random.default_rng(0), {"M": m, "N": n, "K": k}
    first, second, _ = LAYOUTS[layout]
    shapes = [[sizes[name] for name in own.split(")")[0][1:].split(",")] for own in (first, second)]
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def rounding(products: tc.Products) -> tc.GpuOptions:
    return tc.GpuOptions(numerics=tc.Numerics(products=products))


def agrees(f: tc.Comprehension, arrays: tuple[npt.NDArray[Any], ...], kernel: Kernel, products: tc.Products) -> bool:
    """With the oracle for that class, whatever the emulator draws."""
    (expected,) = f.oracle(*arrays, products=products).values()
    return compare(expected, np.asarray(kernel(*arrays))).ok


@one_in(5)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (70, 66, 55), (16, 8, 9), (33, 97, 100)])
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
@pytest.mark.parametrize("products", ROUNDED)
def test_products_agree_with_the_oracle_of_their_class(
    products: tc.Products, layout: str, m: int, n: int, k: int
) -> None:
    f, arrays = product(layout), operands(layout, m, n, k)
    kernel = f.compile(*arrays, target="emulator", options=rounding(products))
    assert multiplies(kernel)
    assert agrees(f, arrays, kernel, products)


def test_factors_are_rounded_only_where_the_options_say_so() -> None:
    f, arrays = product("AB"), operands("AB", 64, 64, 64)
    exact, rounded = (
        f.compile(*arrays, target="emulator", options=rounding(own)) for own in (tc.Products.EXACT, ROUNDED[0])
    )
    assert not multiplies(exact)
    assert agrees(f, arrays, exact, tc.Products.EXACT)
    assert not agrees(f, arrays, rounded, tc.Products.EXACT)
    assert not agrees(f, arrays, rounded, tc.Products.THREE_TF32)


def test_the_proof_refuses_factors_that_are_rounded_against_the_options() -> None:
    machine, refusal = GpuMachine.with_products, "a lane holds something else than what a matrix instruction multiplies"
    with (
        patch.object(GpuMachine, "with_products", lambda own, _products: machine(own, tc.Products.THREE_TF32)),
        pytest.raises(tc.VerificationError, match=refusal),
    ):
        product("AB").compile((64, 64), (64, 64), target="emulator", options=rounding(tc.Products.TF32))


@pytest.mark.parametrize("products", ROUNDED)
def test_numbers_that_are_not_finite_or_very_small_stay_within_the_bound(products: tc.Products) -> None:
    f, (a, b) = product("AB'"), operands("AB'", 32, 32, 48)
    a[0, 0], a[1, 1], a[2, 2] = np.inf, np.nan, np.finfo(np.float32).max
    a[3] *= 1e-38
    b[4] *= 1e-42
    kernel = f.compile(a, b, target="emulator", options=rounding(products))
    assert multiplies(kernel)
    assert agrees(f, (a, b), kernel, products)


@pytest.mark.parametrize("products", ROUNDED)
def test_large_products_compile_without_spills(products: tc.Products) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = product("AB'").compile((1024, 1024), (1024, 1024), target="cuda:sm_80", options=rounding(products))
    assert "mma.sync.aligned.m16n8k8" in kernel.source
    for grid in kernel.resources.grids:
        assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)


def test_what_products_is_must_be_known() -> None:
    with pytest.raises(tc.OptionsError, match=r"products must be a tc\.Products, got 'tf32'"):
        tc.Numerics(products="tf32")  # type: ignore[arg-type]
    options = rounding(tc.Products.THREE_TF32)
    assert tc.GpuOptions.from_json(options.to_json()) == options
