"""Every builtin function, in float32 and float64, against mpmath: no result is off by more ulps than promised."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import pytest
from mpmath import mp, mpf

from tc.base.types import ScalarType
from tc.language.program.functions import FUNCTIONS
from tc.language.program.program import Call, IteratorReference, Literal
from tc.polyhedral.ir.loops import Block, LoopKind, LoopProgram, StatementBody
from tests.codegen.build import buffer, instance, integer, loops, read
from tests.codegen.harness import Array, dtype_of, evaluate, run
from tests.turns import every, one_in

Real = Any  # mpmath has no types
FLOATS: Final = (ScalarType.FLOAT32, ScalarType.FLOAT64)
mp.prec = 200


def _erfcinv(y: Real) -> Real:
    if y > 0.5:
        return mp.erfinv(1 - y)
    start = mp.sqrt(-mp.log(y * mp.sqrt(mp.pi) * mp.sqrt(-mp.log(y))))
    return mp.findroot(lambda w: mp.log(mp.erfc(w)) - mp.log(y), start)


def _erfcx(x: Real) -> Real:
    if x > 1e8:
        return (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def _norm(*x: Real) -> Real:
    return mp.sqrt(mp.fsum(v * v for v in x))


def _nearest(x: Real) -> Real:
    return mp.sign(x) * mp.floor(abs(x) + mpf("0.5"))


EXACT: Final[dict[str, Callable[..., Real]]] = {
    **{name: getattr(mp, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "cospi", "erf", "erfc", "erfinv",
        "exp", "expm1", "log", "log10", "log1p", "sin", "sinh", "sinpi", "sqrt", "tan", "tanh", "ceil", "floor",
        "hypot",
    )},
    "abs": abs, "fabs": abs, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "copysign": lambda x, y: abs(x) * (-1 if y < 0 else 1),
    "cyl_bessel_i0": lambda x: mp.besseli(0, x), "cyl_bessel_i1": lambda x: mp.besseli(1, x),
    "erfcinv": _erfcinv, "erfcx": _erfcx, "exp10": lambda x: mpf(10) ** x, "exp2": lambda x: mpf(2) ** x,
    "fdim": lambda x, y: max(x - y, mpf(0)), "fdivide": lambda x, y: x / y, "fma": lambda x, y, z: x * y + z,
    "fmax": max, "fmin": min, "fmod": lambda x, y: mpf(math.fmod(float(x), float(y))),
    "j0": lambda x: mp.besselj(0, x), "j1": lambda x: mp.besselj(1, x),
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))), "log2": lambda x: mp.log(x, 2),
    "logb": lambda x: mpf(mp.frexp(x)[1] - 1), "max": max, "min": min,
    "norm3d": _norm, "norm4d": _norm, "normcdf": lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
    "normcdfinv": lambda p: -mp.sqrt(2) * _erfcinv(2 * p) if p < 0.5 else mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "pow": lambda x, y: x ** y,
    "rcbrt": lambda x: mp.sign(x) / mp.cbrt(abs(x)), "remainder": lambda x, y: mpf(math.remainder(float(x), float(y))),
    "rhypot": lambda *x: 1 / _norm(*x), "rnorm3d": lambda *x: 1 / _norm(*x), "rnorm4d": lambda *x: 1 / _norm(*x),
    "round": _nearest, "rsqrt": lambda x: 1 / mp.sqrt(x), "tgamma": mp.gamma,
    "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
    "y0": lambda x: mp.bessely(0, x), "y1": lambda x: mp.bessely(1, x),
}  # fmt: skip

INF, NAN = math.inf, math.nan

# Where a function is defined, or where mpmath computes it in reasonable time; both ends are excluded.
DOMAINS: Final[dict[str, tuple[float, float]]] = {
    **dict.fromkeys(("acos", "asin", "atanh", "erfinv"), (-1.0, 1.0)),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), (0.0, math.inf)),
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "sinh", "cosh"), (-1200.0, 1200.0)),
    **dict.fromkeys(("cyl_bessel_i0", "cyl_bessel_i1"), (-730.0, 730.0)),
    **dict.fromkeys(("j0", "j1"), (-1e3, 1e3)),
    **dict.fromkeys(("y0", "y1"), (0.0, 1e3)),
    **dict.fromkeys(("fmod", "remainder", "pow"), (-1e3, 1e3)),
    "acosh": (1.0, math.inf), "erf": (-1e2, 1e2), "erfc": (-1e2, 30.0), "erfcinv": (0.0, 2.0),
    "erfcx": (-27.0, math.inf), "lgamma": (-30.0, 1e5), "log1p": (-1.0, math.inf),
    "normcdf": (-40.0, 10.0), "normcdfinv": (0.0, 1.0), "tgamma": (-30.0, 200.0),
}  # fmt: skip
# Near their zeros these lose relative accuracy: their error counts against a magnitude of at least this.
FLOORS: Final = {"lgamma": 4.0, "j0": 1.0, "j1": 1.0, "y0": 1.0, "y1": 1.0}
SAMPLES: Final = 40


def _samples(name: str, type: ScalarType, random: np.random.Generator) -> Array:
    """Points all over the domain: evenly near 0, by magnitude from the least to the greatest, and near both ends."""
    low, high = DOMAINS.get(name, (-math.inf, math.inf))
    limits = np.finfo(dtype_of(type))
    low, high = max(low, float(limits.min)), min(high, float(limits.max))
    exponents = random.uniform(math.log2(limits.smallest_subnormal), math.log2(max(-low, high)), SAMPLES)
    magnitudes = np.exp2(exponents) * random.choice((-1.0, 1.0), SAMPLES)
    ends = [end + side * np.exp2(random.uniform(-60, 0, 4)) for end, side in ((low, 1), (high, -1))]
    even = random.uniform(max(low, -6.0), min(high, 6.0), SAMPLES)
    points = np.concatenate([even, magnitudes, abs(magnitudes) if low >= 0 else -magnitudes, *ends])
    points = points.astype(dtype_of(type))
    return points[(points > low) & (points < high)]


def _arguments(name: str, type: ScalarType) -> dict[str, Array]:
    random = np.random.default_rng(1)
    arguments = [_samples(name, type, random) for _ in range(FUNCTIONS[name].arity)]
    if name == "pow":
        arguments[0] = abs(arguments[0])
    if len(arguments) > 1:
        arguments = [random.permutation(points) for points in arguments]
    count = min(map(len, arguments))
    return {f"x{position}": points[:count] for position, points in enumerate(arguments)}


def _ulps(got: float, exact: Real, type: ScalarType, floor: float) -> float:
    """The distance in units in the last place of the exact value; 0 where both overflow."""
    with np.errstate(over="ignore"):
        nearest = dtype_of(type).type(float(exact))
    if not np.isfinite(nearest) or not math.isfinite(got):
        return 0.0 if nearest == got else math.inf
    unit = np.spacing(max(abs(nearest), dtype_of(type).type(floor)))
    return float(abs(mpf(got) - exact) / mpf(float(unit)))


@cache
def _kernel(type: ScalarType) -> dict[str, tuple[dict[str, Array], Array]]:
    """Arguments and results of every function, from one kernel that calls them all."""
    calls = {name: (_arguments(name, type), np.zeros(0)) for name in FUNCTIONS}
    arrays: dict[str, Array] = {}
    buffers, bodies, nests = [], [], []
    for name, (arguments, _) in calls.items():
        extent = len(arguments["x0"])
        calls[name] = (arguments, np.zeros(extent, dtype_of(type)))
        arrays |= {f"{name}.{argument}": points for argument, points in arguments.items()}
        arrays[name] = calls[name][1]
        buffers += [buffer(f"{name}.{argument}", type, extent) for argument in arguments]
        buffers.append(buffer(name, type, extent, writable=True))
        value = Call(name, tuple(read(f"{name}.{argument}", type, "i") for argument in arguments), type)
        bodies.append(StatementBody(name, ("i",), name, (IteratorReference("i"),), None, value))
        nests.append(loops([("c0", extent, LoopKind.VECTOR)], instance(name, "c0")))
    program = LoopProgram("functions", tuple(buffers), (), (), tuple(bodies), Block(tuple(nests)), checked=True)
    assert run(program, arrays) == 0
    return calls


@one_in(3)
@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("name", every(2, EXACT))
def test_function_keeps_its_accuracy(name: str, type: ScalarType) -> None:
    arguments, got = _kernel(type)[name]
    worst, where = max(
        (_ulps(float(result), EXACT[name](*(mpf(float(x)) for x in point)), type, FLOORS.get(name, 0.0)), point)
        for point, result in zip(zip(*arguments.values(), strict=True), got, strict=True)
    )
    # Half an ulp is the rounding of the exact result, which no exact function escapes.
    assert worst <= max(FUNCTIONS[name].ulps, 0.5), f"{worst} ulps at {where}"


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_nextafter(type: ScalarType) -> None:
    arguments, got = _kernel(type)["nextafter"]
    np.testing.assert_array_equal(got, np.nextafter(arguments["x0"], arguments["x1"]))


@pytest.mark.parametrize("type", [t for t in ScalarType if t.is_half], ids=str)
def test_nextafter_of_halves_steps_among_halves(type: ScalarType) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(type))
    for other in (every[::-1].copy(), np.zeros_like(every), np.full_like(every, INF), np.roll(every, 1)):
        call = Call("nextafter", (read("x0", type, "i"), read("x1", type, "i")), type)
        got = evaluate({"result": call}, {"x0": every, "x1": other})["result"]
        with np.errstate(all="ignore"):
            expected = np.nextafter(every, other)
        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@one_in(3)
@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_lanes_are_as_special_as_scalars(type: ScalarType) -> None:
    """Zeros, infinities, NaN and subnormals in every lane give what the compiler's plain code gives."""
    limits = np.finfo(dtype_of(type))
    specials = [
        0.0,
        -0.0,
        INF,
        -INF,
        NAN,
        1.0,
        -1.0,
        2.0,
        limits.max,
        limits.min,
        limits.tiny,
        limits.smallest_subnormal,
    ]
    points = np.repeat(np.array(specials, dtype_of(type)), 16)
    inputs = {f"x{n}": np.roll(points, 16 * n) for n in range(4)}
    calls = {
        name: Call(name, tuple(read(argument, type, "i") for argument in list(inputs)[: function.arity]), type)
        for name, function in FUNCTIONS.items()
    }
    lanes, plain = evaluate(calls, inputs), evaluate(calls, inputs, "-O0")
    for name in calls:
        assert (np.signbit(lanes[name]) == np.signbit(plain[name]))[~np.isnan(plain[name])].all(), name
        np.testing.assert_allclose(lanes[name], plain[name], rtol=32 * float(limits.eps), err_msg=name)


def test_remainders_are_exact() -> None:
    """Of all magnitudes, and next to multiples of the divisor, with a fused multiply-add and without."""
    random = np.random.default_rng(0)
    few, factors = random.integers(1, 1 << 24, 4096).astype(np.float32), random.integers(1, 1 << 24, 4096)
    multiples = few * factors.astype(np.float32)
    anything = random.integers(0, 1 << 32, (2, 4096), dtype=np.uint32).view(np.float32)
    xs = np.concatenate([anything[0], multiples, np.nextafter(multiples, np.float32(0)), -multiples])
    ys = np.concatenate([anything[1], few, few, few])
    with np.errstate(all="ignore"):
        exact = np.fmod(xs, ys)
    call = Call("fmod", (read("x0", ScalarType.FLOAT32, "i"), read("x1", ScalarType.FLOAT32, "i")), ScalarType.FLOAT32)
    for flags in ((), ("-mno-fma",)) if platform.machine() == "x86_64" else ((),):
        got = evaluate({"result": call}, {"x0": xs, "x1": ys}, *flags)["result"]
        np.testing.assert_array_equal(got, exact)
        number = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(exact)[number])


def test_every_function_is_tested() -> None:
    assert set(EXACT) | {"nextafter"} == set(FUNCTIONS)


EDGES: Final[list[tuple[str, tuple[float, ...], float]]] = [
    ("abs", (-0.0,), 0.0), ("abs", (-INF,), INF), ("acosh", (0.5,), NAN), ("atanh", (1.0,), INF),
    ("cbrt", (-INF,), -INF),
    ("cospi", (0.5,), 0.0), ("cospi", (1e38,), 1.0), ("cospi", (INF,), NAN), ("sinpi", (-0.0,), -0.0),
    ("sinpi", (3.0,), 0.0), ("sinpi", (1e38,), 0.0), ("sinpi", (-INF,), NAN),
    ("cyl_bessel_i0", (-INF,), INF), ("cyl_bessel_i0", (0.0,), 1.0), ("cyl_bessel_i1", (-INF,), -INF),
    ("cyl_bessel_i1", (-0.0,), -0.0),
    ("erfcinv", (0.0,), INF), ("erfcinv", (2.0,), -INF), ("erfcinv", (1.0,), 0.0), ("erfcinv", (-1e-9,), NAN),
    ("erfcinv", (2.5,), NAN), ("erfinv", (1.0,), INF), ("erfinv", (-1.0,), -INF), ("erfinv", (-0.0,), -0.0),
    ("erfinv", (1.5,), NAN), ("erfcx", (INF,), 0.0), ("erfcx", (-INF,), INF), ("erfcx", (0.0,), 1.0),
    ("exp", (-INF,), 0.0), ("exp10", (-INF,), 0.0), ("exp10", (INF,), INF), ("exp10", (-0.0,), 1.0),
    ("exp10", (1e38,), INF),
    ("fdim", (INF, INF), 0.0), ("fdim", (NAN, 1.0), NAN), ("fdim", (1.0, NAN), NAN), ("fdim", (-INF, INF), 0.0),
    ("fdivide", (1.0, -0.0), -INF), ("fdivide", (0.0, 0.0), NAN),
    ("fmax", (NAN, 1.0), 1.0), ("fmax", (1.0, NAN), 1.0), ("fmin", (NAN, -1.0), -1.0), ("fmin", (-1.0, NAN), -1.0),
    ("max", (NAN, 1.0), NAN), ("max", (1.0, NAN), NAN), ("max", (NAN, NAN), NAN), ("max", (-INF, 1.0), 1.0),
    ("min", (NAN, 1.0), NAN), ("min", (1.0, NAN), NAN), ("min", (NAN, NAN), NAN), ("min", (INF, 1.0), 1.0),
    ("lgamma", (0.0,), INF), ("lgamma", (-3.0,), INF), ("lgamma", (1.0,), 0.0), ("log", (0.0,), -INF),
    ("log", (-1.0,), NAN),
    ("log1p", (-1.0,), -INF), ("logb", (0.0,), -INF), ("logb", (-INF,), INF),
    ("norm3d", (INF, NAN, 1.0), INF), ("norm3d", (NAN, 1.0, 1.0), NAN), ("norm4d", (0.0, -0.0, 0.0, 0.0), 0.0),
    ("normcdf", (-INF,), 0.0), ("normcdf", (INF,), 1.0), ("normcdf", (0.0,), 0.5), ("normcdf", (-1e38,), 0.0),
    ("normcdfinv", (0.0,), -INF), ("normcdfinv", (1.0,), INF), ("normcdfinv", (1.5,), NAN),
    ("pow", (0.0, 0.0), 1.0), ("rcbrt", (0.0,), INF), ("rcbrt", (-0.0,), -INF), ("rcbrt", (-INF,), -0.0),
    ("rhypot", (0.0, 0.0), INF), ("rhypot", (INF, NAN), 0.0), ("rnorm3d", (0.0, 0.0, 0.0), INF),
    ("rnorm4d", (1.0, NAN, 1.0, 1.0), NAN), ("round", (2.5,), 3.0), ("round", (-2.5,), -3.0),
    ("rsqrt", (0.0,), INF), ("rsqrt", (-0.0,), -INF), ("rsqrt", (INF,), 0.0), ("rsqrt", (-1.0,), NAN),
    ("sqrt", (-1.0,), NAN), ("sqrt", (-0.0,), -0.0), ("tgamma", (0.0,), INF), ("tgamma", (-1.0,), NAN),
    ("trunc", (-1.5,), -1.0), ("y0", (0.0,), -INF), ("y1", (-1.0,), NAN),
    *((name, (NAN,) * function.arity, NAN) for name, function in FUNCTIONS.items()),
]  # fmt: skip


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_functions_at_the_edges(type: ScalarType) -> None:
    bodies = [
        StatementBody(f"S{n}", (), "out", (integer(n),), None, Call(name, tuple(Literal(x, type) for x in point), type))
        for n, (name, point, _) in enumerate(EDGES)
    ]
    out = np.zeros(len(EDGES), dtype_of(type))
    target = buffer("out", type, len(EDGES), writable=True)
    root = Block(tuple(instance(body.name) for body in bodies))
    # At -O0 the compiler does not compute these itself.
    assert run(LoopProgram("edges", (target,), (), (), tuple(bodies), root, checked=True), {"out": out}, (), "-O0") == 0
    with np.errstate(over="ignore"):
        expected = np.array([value for _, _, value in EDGES], dtype_of(type))
    for (name, point, _), got, wanted in zip(EDGES, out, expected, strict=True):
        same = np.isnan(got) if np.isnan(wanted) else got == wanted and np.signbit(got) == np.signbit(wanted)
        assert same, f"{name}{point} gives {got}, not {wanted}"
