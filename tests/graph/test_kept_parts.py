"""Parts of plans that are kept: constants, steps, what is read of models, and the keys of all."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tc.graph
from tc.base.environment import environment
from tc.base.errors import CacheError, CacheWarning
from tc.base.generator import generator_version
from tc.base.interface import Interface
from tc.base.json_records import from_json, to_json
from tc.base.types import ScalarType
from tc.cache.content.configured import Configuration, Mode, open_reader
from tc.cache.content.store import Store
from tc.cache.format.records import Plan
from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import open_size
from tc.graph.ir.source import Declared, Request
from tc.graph.ir.values import Value
from tc.graph.kept import constants
from tc.graph.kept.beside import Beside
from tc.graph.kept.constants import restored, stored
from tc.graph.kept.interface import KnownSource, interface_to_json, source_from_json
from tc.graph.kept.request import MOST_CONTENTS, request_text
from tc.graph.kept.sound import require_sound
from tc.graph.kept.steps import StoredPlan, restored_plan, restored_values, stored_plan
from tc.graph.memory.plan import MemoryPlan
from tc.graph.onnx.stored import all_initializers, digest_of, stored_arrays
from tc.graph.preparation import prepared
from tc.graph.run.kernels import wanted_of
from tc.graph.settings import Settings
from tc.language.lower.interface import interface_of
from tc.language.program.specialization import Signature
from tc.store.plans import MadePlan, Model, PlanCache, WantedPlan
from tc.targets.target import parse_target
from tests.cache import samples
from tests.cache.samples import set_version
from tests.fuzz.graph_programs import drawn

# --- constants -------------------------------------------------------------------------------------------------------


def restore(arrays: dict[str, np.ndarray], held: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = stored(arrays, held)
    assert found is not None
    values = {name: Value(name, ScalarType(array.dtype.name), array.shape) for name, array in arrays.items()}
    return restored(found.places, values, found.small, found.large, held)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16", "bfloat16", "uint64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4, 5), (200, 300)])
def test_constants_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    varied = (random.integers(0, 100, shape) / 3).astype(kind)
    arrays = {"varied": varied, "same": np.full(shape, 3, kind), "zero": np.zeros(shape, kind)}
    for name, array in restore(arrays, {}).items():
        assert (array.shape, array.tobytes()) == (shape, arrays[name].tobytes())
        assert array.flags.c_contiguous
        assert array.flags.aligned


def test_what_does_not_change_along_an_axis_is_stored_once() -> None:
    random = np.random.default_rng(0)
    rows, planes = random.normal(size=(300, 1)), random.normal(size=(16, 1, 1)).astype(np.float32)
    arrays: dict[str, np.ndarray] = {
        "rows": np.repeat(rows, 400, 1),
        "planes": np.broadcast_to(planes, (16, 90, 80)),
        "all": np.ones((900, 9)),
    }
    found = stored(arrays, {})
    assert found is not None
    assert [found.places[name].shape for name in arrays] == [(300, 1), (16, 1, 1), (1, 1)]
    assert (len(found.small), found.large) == (300 * 8 + 16 * 4 + 8, ())
    for name, array in restore(arrays, {}).items():
        np.testing.assert_array_equal(array, arrays[name])


def test_zeros_and_nans_are_told_apart() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    for name, array in restore({"zeros": zeros, "nans": nans}, {}).items():
        np.testing.assert_array_equal(array.view(np.uint32), {"zeros": zeros, "nans": nans}[name].view(np.uint32))


def test_weights_are_found_in_the_model() -> None:
    weights = np.random.default_rng(0).normal(size=(90, 80)).astype(np.float32)
    other = weights.copy()
    other[-1, -1] += 1
    model: dict[str, np.ndarray] = {"other": other, "w": weights, "v": weights.astype(np.float64)}
    arrays = {"a": weights.copy(), "reshaped": weights.reshape(80, 90), "changed": other + 1}
    found = stored(arrays, model)
    assert found is not None
    assert [found.places[name].name for name in arrays] == ["w", "w", None]
    assert [len(part) for part in found.large] == [weights.nbytes]
    for name, array in restore(arrays, model).items():
        np.testing.assert_array_equal(array, arrays[name])
    values = {"a": Value("a", ScalarType.FLOAT32, (90, 80))}
    with pytest.raises(ValueError, match="the model has w with the type float64, not float32"):
        restored({"a": found.places["a"]}, values, b"", (), {"w": weights.astype(np.float64)})


def test_equal_constants_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(0).normal(size=(90, 80)).astype(np.float32)
    same = {f"w{number}": weights.copy() for number in range(3)} | {f"z{number}": np.zeros(3) for number in range(3)}
    found = restore(same, {})
    assert len({id(array) for array in found.values()}) == 2
    monkeypatch.setattr(constants, "MOST", weights.nbytes)
    assert stored(same, {}) is None


# --- steps -----------------------------------------------------------------------------------------------------------


def stored_and_back(plan: MemoryPlan) -> tuple[StoredPlan, MemoryPlan, dict[tuple[str, ...], Signature]] | None:
    calls = [node for node in plan.graph.nodes if isinstance(node, Call)]
    numbers = {call.results: number for number, call in enumerate(calls)}
    found = stored_plan(plan, numbers)
    if found is None:
        return None
    read = from_json(StoredPlan, json.loads(json.dumps(to_json(found))))
    assert read == found
    interfaces = [interface_of(call.program) for call in calls]
    back, found_numbers = restored_plan(read, restored_values(read), interfaces, plan.graph.constants)
    assert found_numbers == numbers
    return found, back, {call.results: wanted_of(plan, call).signature for call in calls}


def plan_of(seed: int) -> MemoryPlan:
    """Of a random graph, without kernels that would be compiled."""
    settings = Settings(rules=(), in_place=seed % 3 > 0, fuse=seed % 2 > 0, reorder=seed % 5 > 0)
    return prepared(drawn(seed).graph, settings).memory


@pytest.mark.parametrize("seed", range(30))
def test_random_plans_come_back_and_are_sound(seed: int) -> None:
    plan = plan_of(seed)
    found = stored_and_back(plan)
    assert found is not None
    _, back, signatures = found
    require_sound(back, signatures)
    assert (back.storage, back.blocks, back.offsets) == (plan.storage, plan.blocks, plan.offsets)
    own, other = plan.graph, back.graph
    assert (own.inputs, own.outputs, own.values, own.name) == (other.inputs, other.outputs, other.values, other.name)
    for node, one in zip(own.nodes, other.nodes, strict=True):
        assert (node.operands, node.results, node.origin) == (one.operands, one.results, one.origin)
        assert getattr(node, "how", None) == getattr(one, "how", None)


def test_nothing_is_in_the_place_of_an_empty_value() -> None:
    """Empty values are at the beginning of the arena, where others are, too."""
    builder = Builder("g")
    x = builder.input("x", ScalarType.FLOAT32, (16,))
    relu = "def r(float(N) X) -> (Y) { Y(i) = max(X(i), 0.0) }"
    twice = "def t(float(N) X, float(M) E) -> (Y, Z) { Y(i) = 2 * X(i)  Z(i) = 2 * E(i) }"
    (kept,) = builder.call(relu, x)
    (nothing,) = builder.call(relu, builder.slice(x, (0,), (1,), (0,)))
    first, second = builder.call(twice, kept, nothing)
    graph = builder.finish([first, second])
    plan = prepared(graph, Settings(rules=(), fuse=False, in_place=False)).memory
    assert {plan.offsets[block.name] for block in plan.blocks if block.bytes == 0} == {0}
    found = stored_and_back(plan)
    assert found is not None
    require_sound(found[1], found[2])
    require_sound(replace(found[1], blocks=found[1].blocks[::-1]), found[2])


def test_plans_that_leave_their_memory_are_refused() -> None:
    """Of plans with one number changed, those are refused that would read or write elsewhere."""
    refused: dict[str, int] = {}
    for seed in range(12):
        found = stored_and_back(plan_of(seed))
        assert found is not None
        own, _, signatures = found
        for changed in changes(own):
            try:
                back, _ = restored_plan(
                    changed, restored_values(changed), interfaces_of(plan_of(seed)), constants_of(seed)
                )
                require_sound(back, signatures)
            except (ValueError, LookupError) as error:
                message = re.sub(r"`[^`]*`", "``", str(error))
                refused[message] = refused.get(message, 0) + 1
    expected = {
        "`` lies outside of ``", "`` and `` lie in one place", "there is no room for ``",
        "a kernel takes other operands", "a value is used before it is made", "`` has no memory of its own",
    }  # fmt: skip
    assert expected <= refused.keys()
    assert sum(refused.values()) > 100


def changes(own: StoredPlan) -> Iterator[StoredPlan]:
    """The plan with one part of it changed in many ways."""
    for at, value in enumerate(own.values):
        larger = replace(value, shape=(*(extent + 1 for extent in value.shape), 2), strides=None)
        yield replace(own, values=(*own.values[:at], larger, *own.values[at + 1 :]))
    for at, block in enumerate(own.blocks):
        for other in (replace(block, offset=-64), replace(block, bytes=0)):
            yield replace(own, blocks=(*own.blocks[:at], other, *own.blocks[at + 1 :]))
    yield replace(own, blocks=tuple(replace(block, offset=0) for block in own.blocks))
    yield replace(own, nodes=own.nodes[::-1])
    yield replace(own, roots=tuple((value, own.inputs[0]) for value, _ in enumerate(own.values)))
    for at, node in enumerate(own.nodes):
        if node.view is not None:
            far = replace(node, view=replace(node.view, offset=node.view.offset + 10**6))
            yield replace(own, nodes=(*own.nodes[:at], far, *own.nodes[at + 1 :]))


def interfaces_of(plan: MemoryPlan) -> list[Interface]:
    return [interface_of(node.program) for node in plan.graph.nodes if isinstance(node, Call)]


def constants_of(seed: int) -> Mapping[str, np.ndarray]:
    return plan_of(seed).graph.constants


# --- what is read of models ------------------------------------------------------------------------------------------


def tensors() -> list[Any]:
    """Initializers of all types, as raw bytes and as numbers."""
    random = np.random.default_rng(0)
    found = []
    kinds = (
        "float32",
        "float64",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "bool",
        "float16",
    )
    for number, kind in enumerate(kinds):
        array = (random.integers(0, 90, (2, 3)) - (0 if kind.startswith("u") else 40)).astype(kind)
        found.append(numpy_helper.from_array(array, f"raw {kind}"))
        values = array.view(np.uint16) if kind == "float16" else array
        found.append(helper.make_tensor(f"{kind}", found[-1].data_type, array.shape, values.reshape(-1).tolist()))
        assert number >= 0
    return found


def graph_with(initializers: list[Any], nodes: list[Any] | None = None) -> Any:
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    return helper.make_graph(nodes or [helper.make_node("Relu", ["x"], ["y"])], "g", [], outputs, initializers)


def test_initializers_are_read_as_the_package_reads_them() -> None:
    made = tensors()
    read = stored_arrays(helper.make_model(graph_with(made)).SerializeToString(), None)
    assert list(read) == [tensor.name for tensor in made]
    for tensor in made:
        expected = numpy_helper.to_array(tensor)
        np.testing.assert_array_equal(read[tensor.name], expected, err_msg=tensor.name)
        assert read[tensor.name].dtype == expected.dtype


def test_data_beside_a_model_is_part_of_what_it_is(tmp_path: Path) -> None:
    """Also of the graphs inside nodes and functions."""

    def external(name: str) -> Any:
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", f"{name}.bin"
        (tmp_path / f"{name}.bin").write_bytes(bytes(8))
        return tensor

    inner = helper.make_node("If", ["c"], ["y"], then_branch=graph_with([external("a")]), else_branch=graph_with([]))
    model = helper.make_model(graph_with([external("b"), *tensors()], [inner]))
    function = helper.make_node("If", ["c"], ["y"], then_branch=graph_with([external("c")]), else_branch=graph_with([]))
    model.functions.append(helper.make_function("own", "f", ["c"], ["y"], [function], [helper.make_opsetid("", 18)]))
    data = model.SerializeToString()
    every = [tensor.name for tensor in all_initializers(memoryview(data)) if tensor.data_location]
    assert sorted(every) == ["a", "b", "c"]
    digests = {digest_of(data, str(tmp_path))}
    for name in every:
        (tmp_path / f"{name}.bin").write_bytes(bytes([1]) * 8)
        digests.add(digest_of(data, str(tmp_path)))
    assert len(digests) == 4


def test_what_callers_must_know_of_a_model() -> None:
    inputs = (
        Declared("x", ScalarType.FLOAT32, (open_size("N"), 3)),
        Declared("free", ScalarType.BOOL, None, optional=True),
        Declared("point", ScalarType.INT64, ()),
    )
    source = KnownSource("name", inputs, ("y", "z"), lambda: pytest.fail("it is read"))
    back = source_from_json(interface_to_json(source), lambda: pytest.fail("it is read"))
    assert (back.name, back.inputs, back.outputs) == (source.name, inputs, ("y", "z"))


# --- keys ------------------------------------------------------------------------------------------------------------

REQUEST = Request({"x": (2, 3)}, ("y",), {"n": np.array([1, 2])}, {"host 0.0": (ScalarType.INT64, (2,))})


def test_what_a_plan_depends_on_is_in_its_key() -> None:
    requests = [
        REQUEST,
        replace(REQUEST, shapes={"x": (2, 4)}),
        replace(REQUEST, outputs=("z",)),
        replace(REQUEST, contents={"n": np.array([1, 3])}),
        replace(REQUEST, contents={"n": np.array([1, 2], np.int32)}),
        replace(REQUEST, computed={"host 0.0": (ScalarType.INT64, (3,))}),
    ]
    texts = [request_text(request, Settings()) for request in requests]
    settings = [
        Settings(rules=()), Settings(rules=tc.graph.RULES[:3]), Settings(fuse=False), Settings(in_place=False),
        Settings(reorder=False), Settings(arena=False), Settings(cuts=()), Settings(cuts=("y",)), Settings(join=False),
        Settings(offsets=tc.graph.Placing(seconds=1.0)), Settings(workspace=1 << 20), Settings(libraries=True),
    ]  # fmt: skip
    texts += [request_text(REQUEST, one) for one in settings]
    assert None not in texts
    assert len(set(texts)) == len(texts)
    changed = {field.name for one in settings for field in fields(one) if getattr(one, field.name) != field.default}
    assert changed == {field.name for field in fields(Settings)} - {"target"}
    assert request_text(REQUEST, Settings(target="cpu")) == texts[0]  # which has a column of its own
    assert request_text(REQUEST, Settings()) == texts[0]


def test_what_would_not_be_found_again_has_no_key() -> None:
    own = replace(tc.graph.RULES[0], meaning="another")
    assert request_text(REQUEST, Settings(rules=(own,))) is None
    many = np.zeros(MOST_CONTENTS + 1, np.int8)
    assert request_text(replace(REQUEST, contents={"n": many}), Settings()) is None


# --- the cache -------------------------------------------------------------------------------------------------------

CPU = parse_target("cpu")


def plans(path: Path, mode: Mode = Mode.STORE, *, own: bool = False) -> PlanCache:
    open_reader.cache_clear()
    return PlanCache(Configuration(str(path), mode, None, own), environment())


def wanted(digest: str = "d", reader: str | None = "onnx 1", text: str = "{}") -> WantedPlan:
    return WantedPlan(Model(digest, reader), text, CPU)


MADE = MadePlan('{"name": "g"}', "g(x(1))", (), (b"one", b"two"), '{"steps": 1}', b"small")


def test_a_plan_is_found_for_the_same_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    assert plans(path).find(wanted()) is None
    plans(path).keep(wanted(), MADE)
    found = plans(path).find(wanted())
    assert found is not None
    assert (found.steps, found.contents, found.title) == (MADE.steps, MADE.contents, MADE.title)
    assert plans(path).constants(found) == (b"one", b"two")
    assert plans(path).interface(Model("d", "onnx 1")) == MADE.interface
    for other in (
        wanted("e"),
        wanted(text="[]"),
        wanted(reader="onnx 2"),
        replace(wanted(), target=parse_target("emulator")),
    ):
        assert plans(path).find(other) is None
    assert plans(path).interface(Model("d", "onnx 2")) is None
    # Where the package is not installed, whichever has read the model will do.
    assert plans(path).find(wanted(reader=None)) == found
    assert plans(path).interface(Model("d", None)) == MADE.interface


def test_plans_for_other_threads_serve_where_the_cache_is_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.db"
    plans(path).keep(wanted(), MADE)
    monkeypatch.setattr("tc.store.wanted.available_threads", lambda: 77)
    assert plans(path).find(wanted()) is None
    assert plans(path, Mode.STRICT).find(wanted()) is not None


def test_plans_of_another_generator_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cache.db"
    plans(path).keep(wanted(), MADE)
    monkeypatch.setattr("tc.store.plans.generator_version", lambda: f"{generator_version()} later")
    assert plans(path).find(wanted()) is None
    assert plans(path).interface(wanted().model) is None


def test_a_cache_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    store = Store.open(path)
    with store.transaction() as connection:
        for table in ("plans", "models", "constants"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    set_version(path, "1")
    with pytest.raises(CacheError, match="was written by an older tc"):
        plans(path, Mode.WARN).find(wanted())
    assert plans(path).find(wanted()) is None
    plans(path).keep(wanted(), MADE)
    assert plans(path).find(wanted()) is not None


def test_damage_is_an_error_of_a_named_cache_and_a_warning_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    plans(path).keep(wanted(), MADE)
    with Store.open(path).transaction() as connection:
        connection.exec_driver_sql("UPDATE plans SET steps = '{}'")
    with pytest.raises(CacheError, match="of table plans: its content does not match its hash"):
        plans(path).find(wanted())
    with pytest.warns(CacheWarning, match="the cache of compiled kernels is not used"):
        assert plans(path, own=True).find(wanted()) is None
    with pytest.raises(CacheError, match=r"holds what tc did not make: a plan \(no\)"), plans(path).reading("a plan"):
        raise ValueError("no")
    with pytest.raises(CacheError, match="holds what tc did not make: a plan of g"):
        plans(path).constants(replace(plan_record(), constants="{}"))


def plan_record() -> Plan:
    return replace(samples.plan(), title="g")


def test_what_a_thread_makes_beside_and_what_it_raises() -> None:
    assert Beside(lambda: threading.current_thread() is threading.main_thread()).value() is False

    def fail() -> None:
        raise KeyError("gone")

    beside = Beside(fail)
    beside.wait()
    for _ in range(2):
        with pytest.raises(KeyError, match="gone"):
            beside.value()


def test_where_there_can_be_no_thread_its_caller_makes_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    beside = Beside(lambda: threading.current_thread() is threading.main_thread())
    beside.wait()
    assert beside.value()
