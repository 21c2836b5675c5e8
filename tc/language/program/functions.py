"""The builtin functions of the language: CUDA's names, their arity and the accuracy that kernels promise."""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen


@frozen
class Function:
    """A builtin.  ``ulps`` bounds the error of every backend, in units in the last place of the result.

    ``keeps_integers``: integer operands give an integer result instead of being converted to floating point.
    """

    name: str
    arity: int
    ulps: int
    keeps_integers: bool = False


# Kernels, the oracle and the tests of accuracy share these bounds.  glibc states 4 ulps for the functions that it has
# for vector lanes, CUDA and SLEEF one to two for the common ones; the bound leaves room for the worst of them.
# Bessel and gamma functions lose relative accuracy near their zeros: see the oracle.
_ONE: Final = {
    "acos": 4, "acosh": 4, "asin": 4, "asinh": 4, "atan": 4, "atanh": 4, "cbrt": 4, "cos": 4, "cosh": 4,
    "cospi": 4, "cyl_bessel_i0": 16, "cyl_bessel_i1": 16, "erf": 4, "erfc": 8, "erfcinv": 16, "erfcx": 16,
    "erfinv": 16, "exp": 4, "exp10": 4, "exp2": 4, "expm1": 4, "j0": 16, "j1": 16, "lgamma": 8, "log": 4,
    "log10": 4, "log1p": 4, "log2": 4, "normcdf": 16, "normcdfinv": 16, "rcbrt": 4, "rsqrt": 4, "sin": 4,
    "sinh": 4, "sinpi": 4, "sqrt": 1, "tan": 4, "tanh": 4, "tgamma": 16, "y0": 16, "y1": 16,
}  # fmt: skip
_ONE_EXACT: Final = ("ceil", "fabs", "floor", "logb", "round", "trunc")
_TWO: Final = {"atan2": 4, "fdim": 1, "fdivide": 2, "hypot": 4, "pow": 8, "rhypot": 4}
_TWO_EXACT: Final = ("copysign", "fmod", "fmax", "fmin", "nextafter", "remainder")
_MORE: Final = {"fma": (3, 1), "norm3d": (3, 4), "rnorm3d": (3, 4), "norm4d": (4, 4), "rnorm4d": (4, 4)}

FUNCTIONS: Final[dict[str, Function]] = {
    **{name: Function(name, 1, ulps) for name, ulps in _ONE.items()},
    **{name: Function(name, 1, 0) for name in _ONE_EXACT},
    "abs": Function("abs", 1, 0, keeps_integers=True),
    **{name: Function(name, 2, ulps) for name, ulps in _TWO.items()},
    **{name: Function(name, 2, 0) for name in _TWO_EXACT},
    "min": Function("min", 2, 0, keeps_integers=True),
    "max": Function("max", 2, 0, keeps_integers=True),
    **{name: Function(name, arity, ulps) for name, (arity, ulps) in _MORE.items()},
}


def builtin(name: str) -> Function | None:
    """The function called ``name``; CUDA's single-precision spellings (``fmaxf``) name the same function."""
    found = FUNCTIONS.get(name)
    if found is None and name.endswith("f"):
        found = FUNCTIONS.get(name[:-1])
    return found
