"""Names that mean something to C, to CUDA, to isl or to the kernels themselves simply work."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tests.arrays import array, whole
from tests.turns import one_in

# Words of C, of its headers and predefined macros, of CUDA and OpenCL, of isl, and of the kernels themselves.
WORDS = """
auto break case char const continue default do else enum extern for goto if inline long register restrict return short
signed sizeof static struct switch typedef union unsigned void volatile while _Bool _Complex _Generic typeof asm class
new delete this template namespace operator private virtual
NULL INFINITY NAN M_PI I unix linux EOF INT_MAX INT64_C errno stdin assert main malloc memcpy printf int32_t size_t
__global__ __device__ __shared__ threadIdx blockIdx __syncthreads get_global_id barrier kernel global fmaxf
exists and or not implies infty nan rat mod floor ceil pow min max abs exp
tc_kernel tc_runtime runtime buffers scalars fault c0 i_m t_A i0 T A_ _ __ O o0 S0 S0_init sum0 2LUT 3d
"""
NAMES = WORDS.split()
ROLES = ("tensor", "size", "iterator", "result", "scalar", "temporary")


@one_in(2)
@pytest.mark.parametrize("turn", range(len(ROLES)), ids=ROLES)
def test_names_of_c_and_cuda_simply_work(turn: int) -> None:
    """Every name takes every role in turn."""
    count = len(NAMES) // len(ROLES) * len(ROLES)
    names = [*NAMES[turn:], *NAMES[:turn]][:count]
    groups = [tuple(names[n : n + len(ROLES)]) for n in range(0, count, len(ROLES))]
    parameters = ", ".join(f"float({size}) {tensor}, float {scalar}" for tensor, size, _, _, scalar, _ in groups)
    results = ", ".join(result for _, _, _, result, _, _ in groups)
    statements = "\n".join(
        f"{temporary}({i}) = {tensor}({i}) * {scalar}\n{result}({i}) = {temporary}({i}) + {tensor}.0"
        for tensor, _, i, result, scalar, temporary in groups
    )
    definition = tc.define(f"def {names[0]}_({parameters}) -> ({results}) {{\n{statements}\n}}")[f"{names[0]}_"]
    inputs = [whole(n + 1, seed=n) for n in range(len(groups))]
    outputs = definition(*(argument for n, x in enumerate(inputs) for argument in (x, n)))
    assert isinstance(outputs, tuple)
    for n, (x, output) in enumerate(zip(inputs, outputs, strict=True)):
        np.testing.assert_array_equal(output, x * n + (n + 1))


def test_definitions_may_have_awkward_names() -> None:
    text = "\n".join(f"def {name}(float(N) X) -> (Y) {{ Y(i) = X(i) + 1 }}" for name in NAMES)
    found = tc.define(text)
    assert list(found) == NAMES
    x = whole(3)
    for name in ("for", "__global__", "NULL", "unix"):
        np.testing.assert_array_equal(array(found[name](x)), x + 1)
