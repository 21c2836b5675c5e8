"""The arrays of trials: indices in range, strides as in the signature, and files that come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tc
from tc.language.lower.interface import interface_of
from tc.language.program.specialization import ArraySpec
from tc.tuner.trial.trial_arrays import keep_arrays, kept_arrays, random_arrays

GATHER = "def f(float(E,D) T, int32(B,L) I, uint8(B) J, bool(B) K) -> (O) { O(b,d) +=! T(I(b,l), d) * J(b) * K(b) }"


def test_indices_are_in_range_and_integers_small() -> None:
    f = tc.define(GATHER).f
    specialization = f.specialize((5, 3), (100, 4), (100,), (100,))
    arrays = random_arrays(f.program, specialization, 1)
    assert {name: (array.shape, array.dtype.name) for name, array in arrays.items()} == {
        "T": ((5, 3), "float32"),
        "I": ((100, 4), "int32"),
        "J": ((100,), "uint8"),
        "K": ((100,), "bool"),
    }
    assert set(np.unique(arrays["I"])) == set(range(5))
    assert set(np.unique(arrays["J"])) == set(range(8))
    assert np.isfinite(f.reference(*arrays.values())).all()
    again = random_arrays(f.program, specialization, 1)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert not np.array_equal(arrays["T"], random_arrays(f.program, specialization, 2)["T"])


def test_where_an_index_is_computed_with_it_is_zero() -> None:
    f = tc.define("def f(float(E) T, int32(B) I) -> (O) { O(b) = T(2 * I(b) + 1) }").f
    arrays = random_arrays(f.program, f.specialize((4,), (10,)), 0)
    assert not arrays["I"].any()


@pytest.mark.parametrize(
    ("values", "highest"),
    [("I(b) < 0 ? I(b) + 4 : I(b)", 4), ("int64(I(b))", 4), ("I(b) + 1", 1), ("W(I(b)) > 0 ? 1 : 0", 3)],
)
def test_indices_that_temporaries_choose_are_in_range(values: str, highest: int) -> None:
    """As graphs have them: indices may count from the end."""
    text = f"def f(float(E) T, int32(B) I, float(V) W) -> (J, O) {{ J(b) = {values}  O(b) = T(J(b)) where b in 0:B }}"
    f = tc.define(text).f
    arrays = random_arrays(f.program, f.specialize((4,), (100,), (3,)), 0)
    assert set(np.unique(arrays["I"])) == set(range(highest))
    assert np.isfinite(f.reference(*arrays.values())[1]).all()


def test_sums_of_indices_are_none_of_them() -> None:
    f = tc.define("def f(float(E) T, int32(B,K) I) -> (J, O) { J(b) +=! I(b,k)  O(b) = T(J(b)) where b in 0:B }").f
    assert not random_arrays(f.program, f.specialize((4,), (10, 9)), 0)["I"].any()


def test_many_ways_from_an_integer_are_gone_once() -> None:
    """As residuals have them: there are 2^40 ways to the last one."""
    layers = [f"B{n}(i) = A{n}(i) + 1  C{n}(i) = A{n}(i) * 2  A{n + 1}(i) = B{n}(i) + C{n}(i)" for n in range(40)]
    names = ", ".join(f"B{n}, C{n}, A{n + 1}" for n in range(40))
    f = tc.define(f"def f(int32(N) A0) -> ({names}) {{ {'  '.join(layers)} }}").f
    assert set(random_arrays(f.program, f.specialize((100,)), 0)) == {"A0"}


def test_in_out_results_have_first_values() -> None:
    f = tc.define("def f(float(N) x) -> (y) { y(i) += x(i) }").f
    assert set(random_arrays(f.program, f.specialize((4,)), 0)) == {"x", "y"}


@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16", "int8", "bool", "float64"])
def test_files_come_back_with_their_strides(tmp_path: Path, type: str) -> None:
    f = tc.define(f"def f({type}(M,N) X, {type}(N) y, {type}() z) -> (O) {{ O(i,j) = X(i,j) }}").f
    kind = tc.ScalarType(type)
    turned = ArraySpec((3, 5), kind, (1, -3))
    signature = f._signature([turned, (5,), ()])
    arrays = random_arrays(f.program, f.specialize(turned, (5,), ()), 0)
    keep_arrays(arrays, tmp_path)
    for on_disk in (True, False):
        found = kept_arrays(interface_of(f.program), signature, tmp_path, on_disk=on_disk)
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert found[name].tobytes() == array.tobytes()
        size = kind.itemsize
        assert found["X"].strides == (size, -3 * size)
    on_disk_y = kept_arrays(interface_of(f.program), signature, tmp_path, on_disk=True)["y"]
    assert not on_disk_y.flags.writeable
