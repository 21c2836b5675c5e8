"""Random quasi-affine subscripts are accepted where they are inside, refused where they leave, and computed right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tests.quasi_affine.__main__ import faults
from tests.quasi_affine.judge_families import faults_of_families
from tests.quasi_affine.judge_open import faults_of_open_sizes
from tests.turns import SLOW, one_in


@pytest.mark.parametrize(
    ("programs", "seed"), [pytest.param(24, 7), pytest.param(2000, 1, marks=SLOW)], ids=["sample", "all"]
)
def test_random_programs(programs: int, seed: int) -> None:
    assert list(faults(programs, seed)) == []


@pytest.mark.parametrize(
    ("families", "seed"), [pytest.param(5, 3), pytest.param(400, 2, marks=SLOW)], ids=["sample", "all"]
)
def test_random_programs_at_several_sizes(families: int, seed: int) -> None:
    assert list(faults_of_families(families, seed, every=20)) == []


@pytest.mark.parametrize(
    ("families", "seed"), [pytest.param(12, 5), pytest.param(700, 6, marks=SLOW)], ids=["sample", "all"]
)
@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_random_programs_whose_sizes_stay_open(families: int, seed: int, target: str) -> None:
    assert list(faults_of_open_sizes(families, seed, target)) == []


EMPTY = (
    ("y(i%N) +=! x(i)", (0,)),
    ("y(i%N) +=! x(i) where i in 0:N-1", (0,)),
    ("y(i/N, i%N) max=! x(i)", (0, 0)),
    ("y((i-1+N)%N) = x((i+1)%N) where i in 0:N", (0,)),
    ("y(i) = x(i) where i in 0:min(N,4)", (0,)),
    ("y(i) +=! x(j%N) where i in 0:max(N,4), j in 0:N", (4,)),
    ("y(i, j%N) +=! x(j) where i in 0:3", (3, 0)),
)


@one_in(2)
@pytest.mark.parametrize(("statement", "shape"), EMPTY, ids=[statement for statement, _ in EMPTY])
def test_nothing_is_written_for_no_elements(statement: str, shape: tuple[int, ...]) -> None:
    f = tc.define(f"def f(float(N) x) -> (y) {{ {statement} }}").f
    x = np.ones(0, np.float32)
    for found in (f.reference(x), f(x, target="cpu"), f(x, target="emulator")):
        np.testing.assert_array_equal(found, np.zeros(shape))


def test_elements_that_no_instance_gives_are_named() -> None:
    """As `numpy.convolve` refuses arrays without elements: the result would have N + K - 1 elements."""
    f = tc.define("def f(float(N) x, float(K) w) -> (y) { y(i+k) +=! x(i) * w(k) }").f
    for target in ("cpu", "emulator"):
        with pytest.raises(tc.RangeError, match=r"`y\(0\)` is never written"):
            f(np.ones(0, np.float32), np.ones(3, np.float32), target=target)


def test_conditions_that_sizes_fold_keep_their_iterators() -> None:
    """A condition on what is reduced initializes nothing less, also where a size or scalar decides it."""
    f = tc.define("def f(float(N) a, float(M) x, int s) -> (y) { y(i) +=! x(k) + 0*a(i) where (s > 0 && k >= 0) }").f
    for scalar, total in ((0, 0), (1, 3)):
        for target in ("cpu", "emulator"):
            found = f(np.ones(2, np.float32), np.ones(3, np.float32), scalar, target=target)
            np.testing.assert_array_equal(found, np.full(2, total))


READS = (
    ("x(i - i%2)", lambda i, n: i - i % 2),
    ("x((8-i)%9)", lambda i, n: (8 - i) % 9),
    ("x((i+N-3)%N)", lambda i, n: (i + n - 3) % n),
    ("x(((i-3)%N+N)%N)", lambda i, n: (i - 3) % n),
    ("x(i-3*(i/3))", lambda i, n: i % 3),
    ("x(i+1-2*(i%2))", lambda i, n: i + 1 - 2 * (i % 2)),
    ("x(i-min(i,2))", lambda i, n: i - np.minimum(i, 2)),
    ("x(max(i,2)-i)", lambda i, n: np.maximum(i, 2) - i),
    ("x(i<3 ? 8-i : i-3)", lambda i, n: np.where(i < 3, 8 - i, i - 3)),
    ("x(abs(i-4))", lambda i, n: np.abs(i - 4)),
    ("x((i+s)%N)", lambda i, n: (i + 4) % n),
)


@pytest.mark.parametrize(("read", "index"), READS, ids=[read for read, _ in READS])
def test_reads_that_stay_inside(read: str, index: Callable[..., npt.NDArray[np.int64]]) -> None:
    f = tc.define(f"def f(float(N) x, int s) -> (y) {{ y(i) = {read} where i in 0:9 }}").f
    x = np.arange(10, dtype=np.float32) + 1
    np.testing.assert_array_equal(f.reference(x, 4), x[index(np.arange(9), 10)])


@pytest.mark.parametrize("size", [1, 5, 8])
def test_open_sizes_may_be_read_quasi_affinely(size: int) -> None:
    f = tc.define("def f(float(N) x) -> (y) { y(i) = x(i - i%2) + x(i/2) + x(i-3*(i/3)) where i in 0:N }").f
    kernel = f.compile(tc.ArraySpec((tc.dynamic(8),), tc.ScalarType.FLOAT32), target="cpu")
    x, i = np.arange(size, dtype=np.float32), np.arange(size)
    np.testing.assert_array_equal(kernel(x), x[i - i % 2] + x[i // 2] + x[i % 3])


WRITES = (
    ("y(i%9) = x(i) where i in 0:5", (10, (5,)), (10, (5,))),
    ("y(abs(i-2)) +=! x(i)", (3, (3,)), (7, (5,))),
    ("y(i/4, i-4*(i/4)) = x(i)", (8, (2, 4)), (3, (1, 3))),
    ("y((8-i)%9) = x(i) where i in 0:9", (9, (9,)), (12, (9,))),
    ("y((i+N-3)%N) = x(i)", (5, (5,)), (0, (0,))),
    ("y(i+1-2*(i%2)) = x(i)", (6, (6,)), (10, (10,))),
    ("y(i/2) = x(i) where i in 0:N, i%2 == 0", (6, (3,)), (7, (4,))),
    ("t(i%4) = x(i) where i in 0:4  y(i) = t(i) + x(i)", (6, (4,)), (4, (4,))),
    ("y(i) = x(i) where i in 0:N, 2*i < N", (6, (3,)), (7, (4,))),
    ("y(i) = x(0) where i in 0:N  y(i%3 + N) = x(i) where i in 0:3", (6, (9,)), (3, (6,))),
)


@pytest.mark.parametrize(("statements", "first", "second"), WRITES, ids=[row[0] for row in WRITES])
def test_extents_of_left_hand_sides_are_exact(
    statements: str, first: tuple[int, tuple[int, ...]], second: tuple[int, tuple[int, ...]]
) -> None:
    f = tc.define(f"def f(float(N) x) -> (y) {{ {statements} }}").f
    for size, shape in (first, second):
        x = np.arange(size, dtype=np.float32)
        assert f.output_shapes(x) == {"y": shape}
        assert np.shape(np.asarray(f.reference(x))) == shape


def test_declared_sizes_of_results_are_compared_with_what_is_written() -> None:
    f = tc.define("def f(float(N) x) -> (float(5) y) { y(i%9) = x(i) where i in 0:5 }").f
    assert np.asarray(f.reference(np.ones(5, np.float32))).shape == (5,)
    f = tc.define("def f(float(N) x, float(M) z) -> (float(M) y) { y((i+N-3)%N) = x(i) }").f
    assert np.asarray(f.reference(np.ones(4, np.float32), np.ones(4, np.float32))).shape == (4,)
    with pytest.raises(tc.ArgumentError, match=r"`M == y\.0` does not hold for M = 3, y\.0 = 4"):
        f(np.ones(4, np.float32), np.ones(3, np.float32))


def test_extents_that_a_call_decides_go_through_calls() -> None:
    f = tc.define(
        "def roll(float(N) x) -> (y) { y((i+N-3)%N) = x(i) }"
        "def f(float(M) a) -> (z) { t = roll(a)  z(j) = t(j) + a(j) }"
    ).f
    a = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(f(a), np.roll(a, -3) + a)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y(i) = x((7-i)%9) where i in 0:9", "`x((7 - i) % 9)` leaves `x` at i = 0, N = 1"),
        ("y(i) = x(i/2 - i%2) where i in 0:N", "`x(i / 2 - i % 2)` leaves `x` at i = 1"),
        ("y(i%4) = x(i) where i in 0:5", "`y(0)` is written by more than one instance of the statement"),
        ("y((4-i)%3) = x(i) where i in 0:6", "`y` would be written at subscript -1, below 0, at i = 5"),
    ],
)
def test_refusals_show_an_index(statement: str, message: str) -> None:
    with pytest.raises(tc.SemanticError) as caught:
        tc.define(f"def f(float(N) x) -> (y) {{ {statement} }}").f.specialize(np.ones(9, np.float32))
    assert message in str(caught.value)
