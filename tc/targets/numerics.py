"""``Numerics``: which liberties a kernel may take with the bits of its results."""

from __future__ import annotations

from tc.base.dots import Products
from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.targets.options_json import Written


@frozen
class Numerics(Written):
    """What the results of a kernel may depend on; by default on nothing but the arguments.

    ``deterministic``: every call gives the same bits.  False lets GPUs add and multiply the terms of scatters by atomic
    updates, in whatever order threads come.  Errors stay within the oracle's bounds, but for subnormal ``float32``
    numbers, which NVIDIA's GPUs add up as zeros there.  Other kernels gain nothing by it.

    ``reassociate``: linear recurrences ``h(t+1) = a(t) h(t) + b(t)`` of ``float32`` with few rows and many steps may be
    computed in parts, which do not wait for each other (*Blocks* in ``docs/language.md``).  Parts are carried in
    float64, and the bits are the same in every call; but where the product of many ``a`` leaves the range of float64,
    the result may be NaN.

    ``products``: how GPUs may round the factors of sums of products of two ``float32`` numbers, so that matrix
    instructions compute them: not at all, to 11 bits (``TF32``: relative errors of 2^-11 for each factor), or to the
    sum of two such numbers (``THREE_TF32``: 2^-21; where a factor is infinite, or rounded to infinity, the sum may be
    NaN).  The oracle has a bound for each (``f.oracle(..., products=)``).  Other targets take what is exact.

    ``rescaled_softmax``: where weights of a softmax are factors in a sum of products, the sum may be divided instead of
    each of them (``o = (e v) / s`` in place of ``(e / s) v``), so that no product waits for the sum of its row.  Errors
    stay within the oracle's bounds, but where an undivided sum, which may be as many times larger as a row has weights,
    leaves the range of its type: the result is infinite there, or NaN.

    No search changes it, and a kernel with one is never taken for a kernel with another one.
    """

    deterministic: bool = True
    reassociate: bool = False
    products: Products = Products.EXACT
    rescaled_softmax: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.products, Products):
            raise OptionsError(f"products must be a tc.Products, got {self.products!r}")
        for name in ("deterministic", "reassociate", "rescaled_softmax"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise OptionsError(f"{name} must be True or False, got {value!r}")
