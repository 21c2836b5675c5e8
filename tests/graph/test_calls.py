"""Calls of models: arrays of every framework in and out, results in arrays of the caller, calls that repeat others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.graph.run.execute import Execution
from tests.arrays import whole

F = ScalarType.FLOAT32
FRAMEWORKS: dict[str, Callable[[np.ndarray], Any]] = {"numpy": np.asarray, "torch": torch.from_numpy}


def made(outputs: Sequence[str] = ("sums", "turned"), **settings: Any) -> tc.graph.Model:
    """``sums`` of rows of ``2 * x + b``, and that with its dimensions exchanged, which lies in order only if copied."""
    builder = Builder("pair")
    x, b = builder.input("x", F, (4, 6)), builder.input("b", F, (6,))
    scaled = builder.rename(pointwise(builder, "scaled", "{0} * 2 + {1}", [x, b]), "scaled")
    (sums,) = builder.call("def sums(float(M,N) A) -> (s) { s(m) +=! A(m,n) }", scaled, names=["sums"])
    values: dict[str, Value] = {"sums": sums, "scaled": scaled, "x": x}
    values["turned"] = builder.rename(builder.permute(scaled, (1, 0)), "turned")
    return tc.graph.Model.of(
        builder.finish([values[name] for name in outputs]), tc.graph.Settings(**{"rules": (), **settings})
    )


X, B = whole(4, 6), whole(6, seed=1)
SCALED = 2 * X + B
SUMS = SCALED.sum(1)


@contextmanager
def only_the_short_way() -> Iterator[None]:
    """Inside, no call is made the thorough way."""

    def refuse(*_arguments: object) -> object:
        raise AssertionError("this call was made the thorough way")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Execution, "run", refuse)
        yield


def arrays(results: object) -> list[np.ndarray]:
    assert isinstance(results, tuple)
    return [np.asarray(result) for result in results]


@pytest.mark.parametrize("kind", FRAMEWORKS)
def test_results_are_of_the_framework_of_the_arguments(kind: str) -> None:
    model, make = made(), FRAMEWORKS[kind]
    x, b = make(X), make(B)
    first = model(x, b)
    assert isinstance(first, tuple)
    with only_the_short_way():
        again = model(x * 2, b)
        assert isinstance(again, tuple)
    for results, expected in ((first, SCALED), (again, 4 * X + B)):
        assert {type(result) for result in results} == {type(x)}
        np.testing.assert_array_equal(arrays(results)[0], expected.sum(1))
        np.testing.assert_array_equal(arrays(results)[1], expected.T)
        assert all(array.flags.c_contiguous for array in arrays(results))
    named = model(b=b, x=x)
    with only_the_short_way():
        for called in (named, model(b=b, x=x)):
            np.testing.assert_array_equal(arrays(called)[0], SUMS)
    found = model.run(["scaled"], {"x": x, "b": b})["scaled"]
    with only_the_short_way():
        for result in (found, model.run(["scaled"], {"x": x, "b": b})["scaled"]):
            assert type(result) is type(x)
            np.testing.assert_array_equal(np.asarray(result), SCALED)


def test_frameworks_may_be_mixed() -> None:
    """The results are of the first argument's that is not NumPy's."""
    model = made(["sums"])
    for _ in range(2):
        found = model(X, torch.from_numpy(B))
        assert isinstance(found, torch.Tensor)
        np.testing.assert_array_equal(found.numpy(), SUMS)


class Exporter:
    """An array of a framework that is not known."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> object:
        return self._array.__dlpack__(**options)


def test_arrays_come_through_dlpack() -> None:
    for _ in range(2):
        found = made(["sums"])(Exporter(X), Exporter(B))
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, SUMS)


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    for _ in range(2):
        results = made()(jax.numpy.asarray(X), jax.numpy.asarray(B))
        assert isinstance(results, tuple)
        assert all(isinstance(result, jax.Array) for result in results)
        np.testing.assert_array_equal(arrays(results)[0], SUMS)
        np.testing.assert_array_equal(arrays(results)[1], SCALED.T)


@pytest.mark.parametrize("kind", FRAMEWORKS)
@pytest.mark.parametrize("arena", [True, False])
def test_arrays_with_strides_are_copied_first(kind: str, arena: bool) -> None:
    model, make = made(arena=arena), FRAMEWORKS[kind]
    wide = np.zeros((6, 8), np.float32)
    wide[:, ::2] = X.T
    for view in (make(wide)[:, ::2].T, make(np.asfortranarray(X)), make(as_strided(X, (4, 6), (0, 4)))):
        for _ in range(2):
            sums, turned = arrays(model(view, make(B)))
            expected = 2 * np.asarray(view) + B
            np.testing.assert_array_equal(sums, expected.sum(1))
            np.testing.assert_array_equal(turned, expected.T)


def test_arrays_that_may_not_be_written_are_read() -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(np.asarray(made(["sums"])(frozen, B)), SUMS)
    backwards = X[::-1, ::-1]
    np.testing.assert_array_equal(np.asarray(made(["sums"])(backwards, B)), (2 * backwards + B).sum(1))


def test_bytes_in_another_order_are_refused() -> None:
    with pytest.raises(tc.ArgumentError, match=r"input `x`: elements of dtype '>f4' are not in this machine's byte or"):
        made()(X.astype(">f4"), B)


def test_tensors_that_autograd_follows_are_refused() -> None:
    model, x, b = made(["sums"]), torch.from_numpy(X).requires_grad_(), torch.from_numpy(B)
    for _ in range(2):
        with pytest.raises(tc.ArgumentError, match=r"^input `x`: the tensor requires a gradient, .* pass \.detach\(\)"):
            model(x, b)
    for _ in range(2):
        with torch.no_grad():
            np.testing.assert_array_equal(np.asarray(model(x, b)), SUMS)
        np.testing.assert_array_equal(np.asarray(model(x.detach(), b)), SUMS)


def empty(kind: str, *shape: int) -> Any:
    return FRAMEWORKS[kind](np.zeros(shape, np.float32))


@pytest.mark.parametrize("kind", FRAMEWORKS)
def test_results_go_into_arrays_of_the_caller(kind: str) -> None:
    model, make = made(), FRAMEWORKS[kind]
    x, b = make(X), make(B)
    outs: list[Any] = [
        (empty(kind, 4), empty(kind, 6, 4)),
        (None, empty(kind, 6, 4)),
        {"turned": empty(kind, 6, 4)},
        [empty(kind, 4), None],
    ]
    for out in outs:
        first = model(x, b, out=out)
        with only_the_short_way():
            again = model(x, b, out=out)
        given = dict(enumerate(out)) if not isinstance(out, dict) else {1: out["turned"]}
        for results in (first, again):
            assert isinstance(results, tuple)
            assert all(results[at] is array for at, array in given.items() if array is not None)
            np.testing.assert_array_equal(arrays(results)[0], SUMS)
            np.testing.assert_array_equal(arrays(results)[1], SCALED.T)
    single = empty(kind, 4)
    assert model.run(["sums"], {"x": x, "b": b}, out=single)["sums"] is single
    with only_the_short_way():
        assert model.run(["sums"], {"x": x, "b": b}, out=(single,))["sums"] is single
    np.testing.assert_array_equal(np.asarray(single), SUMS)


@pytest.mark.parametrize("arena", [True, False])
def test_results_go_where_they_cannot_be_computed(arena: bool) -> None:
    """Arrays with strides, and inputs that are read later than the result is written."""
    model = made(["turned", "x", "sums"], arena=arena)
    wide = np.zeros((4, 12), np.float32)
    for _ in range(2):
        wide[...] = 0
        model(X, B, out=(wide[:, ::2].T, None, None))
        np.testing.assert_array_equal(wide[:, ::2], SCALED)
        assert not wide[:, 1::2].any()
    x = X.copy()
    builder = Builder("twice")
    y = builder.input("x", F, (4, 6))
    first = pointwise(builder, "first", "{0} + 1", [y])
    reversed_rows = builder.call("def back(float(M,N) A) -> (Y) { Y(m,n) = A(3 - m, n) where m in 0:4 }", y)
    twice = tc.graph.Model.of(builder.finish([first, *reversed_rows]), tc.graph.Settings(rules=(), arena=arena))
    one, other = arrays(twice(x, out=(x, None)))
    assert one is x
    np.testing.assert_array_equal(x, X + 1)
    np.testing.assert_array_equal(other, X[::-1])


def test_what_does_not_fit_is_said() -> None:
    model = made()
    with pytest.raises(tc.GraphError, match=r"^output `sums` is float32\(4\), the array in out= is float32\(5\)$"):
        model(X, B, out=(np.zeros(5, np.float32), None))
    with pytest.raises(tc.GraphError, match=r"^output `sums` is float32\(4\), the array in out= is int32\(4\)$"):
        model(X, B, out={"sums": np.zeros(4, np.int32)})
    with pytest.raises(tc.ArgumentError, match=r"^pair has no result 'total'; it has sums, turned$"):
        model(X, B, out={"total": np.zeros(4, np.float32)})
    with pytest.raises(
        tc.ArgumentError, match=r"^pair has 2 results \(sums, turned\); out= must be a tuple of as many"
    ):
        model(X, B, out=np.zeros(4, np.float32))
    with pytest.raises(tc.ArgumentError, match=r"^pair has 2 results \(sums, turned\), out= holds 1$"):
        model(X, B, out=(np.zeros(4, np.float32),))
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(tc.ArgumentError, match=r"^output `sums`: the array is read-only"):
        model(X, B, out={"sums": frozen})
    memory = np.zeros(32, np.float32)
    with pytest.raises(tc.ArgumentError, match="the outputs sums and turned share memory"):
        model(X, B, out=(memory[:4], memory[3:27].reshape(6, 4)))
    with pytest.raises(tc.ArgumentError, match="the output sums overlaps the input x"):
        model(memory[:24].reshape(4, 6), B, out=(memory[20:24], None))


def test_what_no_kernel_computes_is_copied() -> None:
    """Inputs, constants, parts of inputs, and one value under two names."""
    builder = Builder("same")
    x = builder.input("x", F, (4, 6))
    constant = builder.constant(B)
    scaled = pointwise(builder, "scaled", "{0} * 2", [x])
    flat = builder.reshape(scaled, (24,))
    outputs = [
        x,
        constant,
        builder.slice(x, (1, 0), (1, 1), (1, 6)),
        scaled,
        flat,
        builder.slice(flat, (3,), (1,), (5,)),
    ]
    expected = [X, B, X[1:2], 2 * X, 2 * X.ravel(), 2 * X.ravel()[3:8]]
    for arena in (True, False):
        model = tc.graph.Model.of(builder.finish(outputs), tc.graph.Settings(rules=(), arena=arena))
        for _ in range(2):
            x_given = X.copy()
            found = arrays(model(x_given))
            for result, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(result, wanted)
            for result in found:
                result[...] = 0  # they share no memory, not even with a constant
            np.testing.assert_array_equal(x_given, X)


def test_one_model_runs_in_many_threads() -> None:
    model = made()

    def work(number: int) -> bool:
        x = X + number
        found = [arrays(model(x, B)) for _ in range(20)]
        return all((sums == (2 * x + B).sum(1)).all() and (turned == (2 * x + B).T).all() for sums, turned in found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_the_host_computes_between_kernels() -> None:
    """Its part ends a program of kernels; operands and results lie in the arena, and in arrays of the caller."""
    builder = Builder("between")
    x = builder.input("x", F, (4, 6))
    scaled = pointwise(builder, "scaled", "{0} * 2", [x])
    rows = builder.permute(scaled, (1, 0))
    (sorted_rows,) = builder.host("Sort", lambda operands: [np.sort(operands[0], 1)], [rows], [(F, (6, 4))])
    end = pointwise(builder, "end", "{0} + 1", [sorted_rows])
    for arena in (True, False):
        model = tc.graph.Model.of(builder.finish([sorted_rows, end]), tc.graph.Settings(rules=(), arena=arena))
        for make in (np.asarray, torch.from_numpy):
            for _ in range(2):
                one, other = arrays(model(make(X)))
                np.testing.assert_array_equal(one, np.sort(2 * X.T, 1))
                np.testing.assert_array_equal(other, one + 1)


def test_indices_out_of_range_are_reported() -> None:
    """The message says where the kernel comes from; the step that found it is not the first."""
    builder = Builder("picking")
    x, i = builder.input("x", F, (4, 6)), builder.input("i", ScalarType.INT32, (3,))
    doubled = pointwise(builder, "doubled", "{0} * 2", [x])
    builder.origin = "node `rows`"
    picked = builder.call("def pick(float(E,D) T, int32(B) J) -> (O) { O(b,d) = T(J(b),d) }", doubled, i)
    model = tc.graph.Model.of(builder.finish(picked), tc.graph.Settings(rules=(), fuse=False))
    good, bad = np.array([0, 3, 1], np.int32), np.array([0, 4, 1], np.int32)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(model(X, good)), 2 * X[good])
        with pytest.raises(
            tc.ArgumentError, match=r"^node `rows`: pick: an index into dimension 0 of T is outside of 0:4"
        ):
            model(X, bad)


def test_models_without_elements_and_without_kernels() -> None:
    builder = Builder("nothing")
    x = builder.input("x", F, (0, 6))
    model = tc.graph.Model.of(builder.finish([x, pointwise(builder, "scaled", "{0} * 2", [x])]))
    for _ in range(2):
        assert [array.shape for array in arrays(model(np.zeros((0, 6), np.float32)))] == [(0, 6), (0, 6)]
    assert model.run([], {"x": np.zeros((0, 6), np.float32)}) == {}


def test_compiled_models_say_what_they_run() -> None:
    model = made(["sums"])
    compiled = model.compile()
    assert list(compiled.kernels) == ["sums"]
    assert "tc_kernel" in compiled.sources["sums"]
    assert compiled.plan.table() == model.plan().table()
    assert model.kernels == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tc.graph.preparation.prepared", lambda *_: pytest.fail("it was compiled before"))
        np.testing.assert_array_equal(np.asarray(model(X, B)), SUMS)
