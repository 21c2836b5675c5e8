"""Sizes that stay open: candidates are right for other values than the greatest too, and winners serve all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.artifact.packing import options_text, pack, unpack
from tc.cache.content.ship import ship
from tc.dispatch.kernel import Kernel
from tc.language.program.specialization import SymbolicSize
from tc.targets.options import CpuOptions
from tc.tuner.trial.messages import Checked
from tc.tuner.trial.reproducer import write_reproducer
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Limits, LocalWorkers
from tests.programs import run
from tests.tuner import trial_support as trial
from tests.waiting import PATIENCE

OPEN = (tc.dynamic(trial.M), trial.K), (trial.K, trial.N)


def task(*most: int) -> Task:
    sizes = tuple(SymbolicSize(size, ((name, 0),)) for size, name in zip(most, "AB", strict=False))
    return replace(trial.TASK, signature=replace(trial.TASK.signature, symbolic=sizes))


def operands(rows: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    random = np.random.default_rng(rows)
    shapes = ((rows, trial.K), (trial.K, trial.N))
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    return a, b


# --- what candidates are checked on ----------------------------------------------------------------------------------


def test_candidates_are_checked_with_the_greatest_sizes_and_with_odd_ones() -> None:
    assert task().calls == ((),)
    assert task(100).calls == ((100,), (63,))
    assert task(512, 17).calls == ((512, 17), (321, 11))
    assert task(1).calls == ((1,),)
    for most in range(2, 300):
        (greatest,), (smaller,) = task(most).calls
        assert greatest == most
        assert 1 <= smaller < most
        assert smaller % 2 == 1


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalWorkers]:
    with trial.workers(Limits(run=PATIENCE), task=trial.OPEN) as pool:
        yield pool


def test_the_right_kernel_is_right_for_both_sizes(workers: LocalWorkers) -> None:
    (packed,) = workers.build([options_text(CpuOptions())], PATIENCE)
    assert isinstance(packed, bytes)
    assert unpack(packed).convention.signature == trial.OPEN.signature
    checked = workers.check(packed, "a")
    assert isinstance(checked, Checked)
    assert 0 < checked.deviation < 1
    first, second = checked.numerics.split(", ")
    assert first != second


@pytest.mark.parametrize(
    ("deed", "kind", "reason"),
    [
        (trial.PLAUSIBLE_BELOW, FailureKind.WRONG, r"result 0, .*outside the bound.* where A\.0 is 21"),
        (trial.BEYOND_THE_LAST_ROW, FailureKind.OUT_OF_BOUNDS, r"the memory around C was written to where A\.0 is 21"),
        (trial.PLAUSIBLE, FailureKind.WRONG, r"result 0, .*outside the bound.* where A\.0 is 33"),
    ],
)
def test_what_is_wrong_for_one_of_them_is_refused(
    workers: LocalWorkers, deed: str, kind: FailureKind, reason: str
) -> None:
    packed = trial.wrong(deed, trial.OPEN)
    failed = workers.check(packed, "bad")
    assert isinstance(failed, Failed)
    assert failed.kind is kind
    assert re.fullmatch(reason, failed.reason, re.DOTALL), failed.reason
    if deed != trial.PLAUSIBLE:
        arrays = operands(trial.M)
        np.testing.assert_array_equal(Kernel(unpack(packed))(*arrays), arrays[0] @ arrays[1])


def for_the_greatest(opened: Task) -> bytes:
    """The kernel for the greatest sizes alone, in the place of one for all of them."""
    settled = trial.right(replace(opened, signature=opened.signature.settled))
    return pack(replace(trial.right(opened), source=settled.source, binary=settled.binary))


def test_a_kernel_for_the_greatest_size_alone_is_refused(workers: LocalWorkers) -> None:
    failed = workers.check(for_the_greatest(trial.OPEN), "bad")
    assert failed == Failed(FailureKind.OUT_OF_BOUNDS, "the memory around C was written to where A.0 is 21")


def test_rows_beyond_the_size_are_no_zeros() -> None:
    """Who adds them up comes to something else."""
    text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m) +=! A(r,m) * B(0,0) where m in 0:5 }"
    opened = replace(trial.OPEN, text=text)
    with trial.workers(task=opened) as pool:
        assert isinstance(pool.check(pack(trial.right(opened)), "good"), Checked)
        failed = pool.check(for_the_greatest(opened), "bad")
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.WRONG
    assert failed.reason.endswith(" where A.0 is 21")


@pytest.mark.slow
def test_a_reproducer_keeps_what_is_open(tmp_path: Path) -> None:
    failure = Failed(FailureKind.WRONG, "result 0 is wrong where A.0 is 21")
    reproducer = write_reproducer(tmp_path, trial.OPEN, options_text(CpuOptions()), 0, failure)
    said = run(reproducer.read_text())
    assert said.startswith("it runs, and is right: ")
    assert len(re.findall(r"bits [0-9a-f]{16}", said)) == 2


# --- what cannot stay open -------------------------------------------------------------------------------------------

REFUSED = {
    "part": (
        "def part(float(N) x) -> (y) { y(i) = x(i) where i in 0:40 }",
        ((tc.dynamic(100),),),
        tc.RangeError,
        r"x\(i\)",
    ),
    "square": (
        "def square(float(M,N) x) -> (y) { y(i) = x(0,0) where i in 0:M*N }",
        ((tc.dynamic(100), tc.dynamic(7)),),
        tc.ArgumentError,
        r"the sizes `M`, `N` cannot stay open, because `y` has an extent of M \* N, which is not quasi-affine",
    ),
    "two numbers": (
        "def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }",
        ((tc.dynamic(100),), np.ones(99, np.float32)),
        tc.ArgumentError,
        r"the size `N` is 100 in `x\.0` and 99 in `y\.0`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_workers_are_started_for_what_cannot_stay_open(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    def started(*_given: object) -> None:
        raise AssertionError("workers were started")

    monkeypatch.setattr("tc.tuner.session.search_setup.LocalWorkers", started)
    text, arguments, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        tc.define(text).single().tune(*arguments, budget="1 trial", progress=False)


# --- winners ---------------------------------------------------------------------------------------------------------


def compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_given: object) -> None:
        raise AssertionError("something was compiled")

    monkeypatch.setattr("tc.compiler.build", build)


def test_a_winner_serves_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    mm = tc.define(trial.TEXT).mm
    before = mm.compile(*OPEN)
    np.testing.assert_array_equal(mm(*operands(7)), np.matmul(*operands(7)))
    found = mm.tune(*OPEN, budget="2 trials", jobs=1, seed=1, progress=False)
    assert not found.failures
    assert found.executable.convention.signature == before.signature
    compile_nothing(monkeypatch)
    winner = mm.compile(*OPEN)
    assert winner is not before
    assert winner.executable == found.executable
    for rows in (1, 2, 7, 21, 32, 33):  # 7 was served by another one before
        assert mm.compile((rows, trial.K), (trial.K, trial.N)) is winner
        np.testing.assert_array_equal(mm(*operands(rows)), np.matmul(*operands(rows)))
    with pytest.raises(AssertionError, match="something was compiled"):
        mm(*operands(34))


@pytest.mark.slow
def test_several_sizes_may_be_open_in_any_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices of the arrays that candidates are checked on are in range for the smaller sizes, too."""
    text = "def f(float(E,D) T, int32(B) I, float(D,N) W) -> (O) { O(b,n) +=! T(I(b),d) * W(d,n) }"
    f, opened = tc.define(text).single(), tuple(map(tc.dynamic, (9, 17, 14, 21)))
    e, d, b, n = opened
    found = f.tune((e, d), (b,), (d, n), budget="2 trials", jobs=1, seed=1, progress=False)
    assert not found.failures
    compile_nothing(monkeypatch)
    random = np.random.default_rng(0)
    for rows, depth, batch, columns in ((9, 17, 14, 21), (1, 1, 1, 1), (5, 16, 3, 20)):
        table, weights = (random.integers(-4, 5, s).astype(np.float32) for s in ((rows, depth), (depth, columns)))
        index = random.integers(0, rows, batch).astype(np.int32)
        np.testing.assert_array_equal(f(table, index, weights), table[index] @ weights)


def test_specs_arrays_and_scalars_may_be_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With strides, a structural scalar, a result that is read first, and one whose extent depends on the size."""
    f = tc.define("""
def f(float(N,K) x, float(K) w, int32 s, float t) -> (d, y) {
    d(i,k) = (x(i + 1,k) - x(i,k)) * w(k) * t
    y(i) += x(i,r_k) * w(r_k + s) where r_k in 0:3
}
""").single()
    weights = np.arange(5, dtype=np.float32)
    spec = tc.ArraySpec((tc.dynamic(2), 5), tc.ScalarType.FLOAT32, (6, 1))
    found = f.tune(spec, weights, 2, 0.5, budget="1 trial", jobs=1, progress=False)
    assert not found.failures
    compile_nothing(monkeypatch)
    for rows in (1, 2):
        x, y = np.arange(12, dtype=np.float32).reshape(2, 6)[:rows, :5], np.ones(rows, np.float32)
        expected = 1 + x[:, :3] @ weights[2:]
        d = np.empty((rows - 1, 5), np.float32)
        f(x, weights, 2, 0.5, out=(d, y))
        np.testing.assert_array_equal(d, (x[1:] - x[:-1]) * weights * np.float32(0.5))
        np.testing.assert_array_equal(y, expected)


def test_definitions_that_tune_themselves_do_so_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    mm = tc.define(trial.TEXT, tune="1 trial").mm
    mm.compile(*OPEN)
    monkeypatch.setattr("tc.tuner.session.search_setup.LocalWorkers", None)
    for rows in (33, 5):
        np.testing.assert_array_equal(mm(*operands(rows)), np.matmul(*operands(rows)))


@pytest.mark.slow
def test_winners_serve_all_sizes_in_production(tmp_path: Path) -> None:
    tuned, shipped = tmp_path / "tuned.db", tmp_path / "shipped.db"
    define = f"import sys, numpy as np, tc\nmm = tc.define({trial.TEXT!r}).mm\n"
    sizes = f"(tc.dynamic({trial.M}), {trial.K}), ({trial.K}, {trial.N})"
    tune = f"mm.tune({sizes}, budget='1 trial', jobs=1, progress=False)\n"
    run(define + tune, environment={"TC_CACHE": str(tuned), "TC_CACHE_MODE": "store"})
    ship(tuned, shipped)
    call = f"""
b = np.arange({trial.K * trial.N}, dtype=np.float32).reshape({trial.K}, {trial.N}) % 5
for rows in (1, 7, 22, {trial.M}):
    a = np.arange(rows * {trial.K}, dtype=np.float32).reshape(rows, {trial.K}) % 7
    np.testing.assert_array_equal(mm(a, b), a @ b)
print(*sorted(name for name in ("islpy", "lark", "sqlalchemy") if name in sys.modules))
try:
    mm(np.ones(({trial.M + 1}, {trial.K}), np.float32), b)
except tc.CacheError as error:
    print(error)
"""
    settings = {"TC_CACHE": str(shipped), "TC_CACHE_MODE": "strict", "TC_CC": "", "PATH": str(tmp_path)}
    none, *missing = run(define + call, environment=settings).splitlines()
    assert none == ""
    assert missing[0].startswith(f"{shipped} has no kernel for mm(A: float32[34, 17], B: float32[17, 29]) on cpu")
