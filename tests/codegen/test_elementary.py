"""The functions of float32 that are written here: accurate, and the same bits in lanes, tails and branches."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest
import scipy.special

from tc.base.types import ScalarType
from tc.codegen.text.numerics import prelude
from tc.language.program.program import Call, Literal, Select
from tests.codegen.build import binary, read
from tests.codegen.harness import Array, evaluate
from tests.turns import one_in

FLOAT: Final = ScalarType.FLOAT32
X: Final = read("x", FLOAT, "i")
FUNCTIONS: Final[dict[str, Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": scipy.special.erf,
}
# Units of the last place of the result.
ULPS: Final = {"exp": 1.5, "expm1": 1.75, "log": 1.5, "log1p": 2.25, "tanh": 2.75, "erf": 2.75}
CALLS: Final = {name: Call(name, (X,), FLOAT) for name in FUNCTIONS}
# Lanes of every width; the last one has no fused multiply-add.
MARCHES: Final = ("native", "x86-64-v3", "x86-64") if platform.machine() == "x86_64" else ("native",)
# Where one formula takes over from another, where results round to 1, where exp becomes subnormal, 0 and infinite, and
# where logarithms take another exponent, or have none.
SEAMS: Final = (
    *(0.1107, 0.3072, 0.0624331, 3.83, 3.93, 9.01, 9.1, 17.33, 18.0, 87.33655, 88.72284, 89.0, 103.27893, 103.97208),
    *(
        104.0,
        2.0**-126,
        2.0**-124,
        2.0**-25,
        1 / 3,
        2 / 3,
        1.0,
        4 / 3,
        8 / 3,
        2.0**24,
        2.0**126 * 4 / 3,
        2.0**127 * 4 / 3,
    ),
)


def points() -> Array:
    """Floats of every exponent, all those around the seams, and what is special."""
    spread = np.arange(0, 1 << 32, (1 << 13) + 1, dtype=np.uint64).astype(np.uint32).view(np.float32)
    around = np.array(SEAMS, np.float32).view(np.uint32)[:, None] + np.arange(-500, 500).astype(np.uint32)
    near = around.astype(np.uint32).ravel().view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    # A NaN whose last bits are those of a number must stay one.
    signalling = np.array([0x7F800001, 0xFFBFFFFF, 0x7FFFFFFF], np.uint32).view(np.float32)
    return np.concatenate([spread, near, -near, special, signalling])


@pytest.mark.parametrize("march", MARCHES)
def test_no_result_is_off_by_three_ulps(march: str) -> None:
    x = points()
    results = evaluate(CALLS, {"x": x}, f"-march={march}")
    for name, function in FUNCTIONS.items():
        got = results[name]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            exact = function(x.astype(np.float64))
            nearest = exact.astype(np.float32)
        unbounded = ~np.isfinite(nearest)
        np.testing.assert_array_equal(got[unbounded], nearest[unbounded], err_msg=name)
        numbers = ~np.isnan(nearest)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(exact[numbers]), err_msg=name)
        bounded = ~unbounded
        ulps = np.abs(got[bounded] - exact[bounded]) / np.spacing(np.abs(nearest[bounded]))
        assert ulps.max() < ULPS[name], f"{name}({x[bounded][ulps.argmax()]!r}) is off by {ulps.max()} ulps"


@one_in(2)
@pytest.mark.parametrize("march", MARCHES)
def test_the_place_of_an_element_does_not_change_its_bits(march: str) -> None:
    x = np.random.default_rng(0).uniform(-9, 9, 129).astype(np.float32)
    whole = evaluate(CALLS, {"x": x}, f"-march={march}")
    for extent in (1, 7, 15, 31, 77):
        part = evaluate(CALLS, {"x": x[-extent:].copy()}, f"-march={march}")
        for name in CALLS:
            np.testing.assert_array_equal(part[name], whole[name][-extent:], err_msg=f"{name}, {extent}")


def test_branches_get_the_same_bits() -> None:
    x = np.random.default_rng(0).uniform(-9, 9, 129).astype(np.float32)
    zero = Literal(0.0, FLOAT)
    chosen = {name: Select(binary(">", X, zero), call, zero, FLOAT) for name, call in CALLS.items()}
    always, sometimes = evaluate(CALLS, {"x": x}), evaluate(chosen, {"x": x})
    for name in CALLS:
        np.testing.assert_array_equal(sometimes[name], np.where(x > 0, always[name], 0), err_msg=name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_call_nothing(name: str) -> None:
    text = prelude({f"tc_{name}_float32"})
    assert "declare simd" not in text
    assert f"{name}f(" not in text
