"""Libraries compute nodes only where they are right, and were measured to be quicker than our kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import tc
import tc.graph
from tc.base.environment import environment
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.cache.content.configured import Configuration, Mode
from tc.graph.ir.builder import Builder, program_of
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host
from tc.graph.libraries.check import wrong
from tc.graph.libraries.form import Form, MatrixProduct, form_of
from tc.graph.libraries.library import Library
from tc.graph.libraries.scipy_calls import SciPy
from tc.graph.libraries.times import least_times
from tc.graph.libraries.work import drawn, work_of
from tc.graph.model import Model
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import Product, product
from tc.graph.partition.partition import partition_of
from tc.graph.preparation import prepared
from tc.graph.settings import Settings
from tc.store.cached import KernelCache

if TYPE_CHECKING:
    from tc.graph.ir.nodes import HostFunction

F = ScalarType.FLOAT32
TRIALS = "tc.graph.libraries.trials"


@frozen
class Fake:
    """NumPy, under other names; ``added`` to what it computes."""

    title: str
    added: float = 0.0

    def function(self, form: Form) -> HostFunction | None:
        def run(operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
            left, right, *bias = operands
            return (np.asarray(left @ right + (bias[0] if bias else 0) + self.added, left.dtype),)

        return run if isinstance(form, MatrixProduct) else None


@frozen
class Failing:
    title: str = "failing"

    def function(self, _form: Form) -> HostFunction | None:
        def run(_operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
            raise RuntimeError("no memory is left")

        return run


def layer() -> Graph:
    builder = Builder("layer")
    x, w, bias = builder.input("x", F, (9, 20)), builder.input("w", F, (20, 7)), builder.input("b", F, (7,))
    made = product(builder, x, w)
    return builder.finish([pointwise(builder, "relu", "fmax({0} + {1}, 0.0)", [made, bias])])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Libraries in the place of those that are here, with seconds for ours and theirs in the place of measured ones;
    returns by which of them times were taken.
    """

    def install(*libraries: Library, seconds: tuple[float, float] = (2.0, 1.0)) -> list[str]:
        taken: list[str] = []

        def times(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
            ours(), theirs()
            taken.append("taken")
            return seconds

        monkeypatch.setattr("tc.graph.libraries.installed.installed", lambda: libraries)
        monkeypatch.setattr(f"{TRIALS}.least_times", times)
        return taken

    return install


def kept_at(path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = KernelCache(Configuration(str(path), mode, None, own=False), environment())
    monkeypatch.setattr(f"{TRIALS}.process_cache", lambda: cache)


def hosts(graph: Graph, settings: Settings | None = None) -> list[str]:
    plan = prepared(graph, settings or Settings(libraries=True)).memory
    return [node.operator for node in plan.graph.nodes if isinstance(node, Host)]


def section(text: str, title: str = "libraries") -> str:
    return re.split(r"== [^\n]* ==\n", text[text.index(f"== {title} ==") :])[1].strip()


def check_results(model: Model) -> None:
    random = np.random.default_rng(0)
    x, w, bias = (random.standard_normal(shape, np.float32) for shape in ((9, 20), (20, 7), (7,)))
    np.testing.assert_allclose(np.asarray(model(x, w, bias)), np.maximum(x @ w + bias, 0), rtol=1e-5, atol=1e-5)


# --- choices ---------------------------------------------------------------------------------------------------------


def test_a_library_that_is_quicker_computes_a_node(installed: Callable[..., list[str]]) -> None:
    installed(Fake("quick 1"))
    assert hosts(layer(), Settings()) == []
    assert hosts(layer()) == ["matmul by quick 1"]
    model = Model.of(layer(), Settings(libraries=True))
    text = model.explain()
    assert section(text) == (
        "matmul_Y = matmul by quick 1, since quick 1 takes 1,000,000.0 us, and our kernels 2,000,000.0 us"
    )
    assert section(text, "host") == "matmul by quick 1: 1"
    check_results(model)
    check_results(Model.of(layer(), Settings(libraries=True, arena=False, fuse=False, rules=())))


@pytest.mark.parametrize("seconds", [(1.0, 2.0), (1.0, 1.0), (1.04, 1.0)])
def test_one_that_is_no_quicker_does_not(seconds: tuple[float, float], installed: Callable[..., list[str]]) -> None:
    installed(Fake(f"slow {seconds}"), seconds=seconds)
    assert hosts(layer()) == []
    model = Model.of(layer(), Settings(libraries=True))
    assert section(model.explain()).startswith(f"matmul_Y = matmul by tc, since slow {seconds} takes")
    check_results(model)


def test_one_that_is_wrong_is_never_timed(installed: Callable[..., list[str]]) -> None:
    taken = installed(Fake("wrong", added=1e-3), Failing())
    model = Model.of(layer(), Settings(libraries=True))
    found = section(model.explain())
    assert re.match(
        r"matmul_Y = matmul by tc, since wrong is wrong: an element is \S+, and should be \S+ within \S+; "
        r"failing is wrong: RuntimeError: no memory is left",
        found,
    )
    assert taken == []
    check_results(model)


def test_the_quickest_of_several_computes(installed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    installed(Fake("first"), Fake("second"), Fake("third"))
    seconds = iter([(3.0, 2.0), (3.0, 1.0), (3.0, 1.5)])
    monkeypatch.setattr(f"{TRIALS}.least_times", lambda _ours, _theirs: next(seconds))
    assert hosts(layer()) == ["matmul by second"]


def test_a_choice_is_made_once(installed: Callable[..., list[str]]) -> None:
    taken = installed(Fake("once"))
    for _ in range(3):
        hosts(layer())
    renamed = Builder("another")
    a, b, c = renamed.input("a", F, (9, 20)), renamed.input("b", F, (20, 7)), renamed.input("c", F, (7,))
    hosts(renamed.finish([pointwise(renamed, "relu", "fmax({0} + {1}, 0.0)", [product(renamed, a, b), c])]))
    assert len(taken) == 1


def test_choices_are_kept_in_the_cache(
    tmp_path: Path, installed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernels.db"
    taken = installed(Fake("kept"))
    kept_at(path, Mode.STORE, monkeypatch)
    assert hosts(layer()) == ["matmul by kept"]
    installed(Fake("kept"), seconds=(1.0, 2.0))  # which would lead to another choice
    for mode in (Mode.STORE, Mode.WARN, Mode.STRICT):
        kept_at(path, mode, monkeypatch)
        assert hosts(layer()) == ["matmul by kept"]
    assert len(taken) == 1


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.STRICT])
def test_nothing_is_measured_where_the_cache_is_only_read(
    mode: Mode, tmp_path: Path, installed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernels.db"
    kept_at(path, Mode.STORE, monkeypatch)
    installed(Fake("here"))
    hosts(layer())
    taken = installed(Fake("there"))
    kept_at(path, mode, monkeypatch)
    assert hosts(layer()) == []
    text = Model.of(layer(), Settings(libraries=True)).explain()
    assert section(text) == "matmul_Y = matmul by tc, since there was not measured, and the cache is only read"
    assert taken == []


def test_what_the_graph_is_prepared_by_is_in_the_key() -> None:
    graph = layer()
    (group,) = partition_of(graph).groups
    found = work_of(graph, group, group[0], "settings")
    assert found == work_of(graph, group, group[0], "settings")
    others = [replace(found, settings="others"), work_of(graph, group[:1], group[0], "settings")]
    assert len({one.digest for one in (found, *others)}) == 3


# --- refusals --------------------------------------------------------------------------------------------------------


def test_libraries_are_for_processors() -> None:
    message = "libraries=True is for the target 'cpu', not for 'emulator'; leave it out"
    with pytest.raises(tc.OptionsError, match=message):
        prepared(layer(), Settings(target="emulator", libraries=True))


def test_models_with_nodes_of_libraries_are_not_exported(tmp_path: Path, installed: Callable[..., list[str]]) -> None:
    installed(Fake("exported"))
    message = r"`layer` cannot be exported: Python computes matmul by exported \(matmul_Y\)"
    with pytest.raises(tc.GraphError, match=message):
        Model.of(layer(), Settings(libraries=True)).export(tmp_path / "model")


def test_a_graph_without_such_nodes(installed: Callable[..., list[str]]) -> None:
    installed(Fake("idle"))
    builder = Builder("sum")
    x = builder.input("x", F, (4, 5))
    model = Model.of(builder.finish([pointwise(builder, "relu", "fmax({0}, 0.0)", [x])]), Settings(libraries=True))
    assert section(model.explain()) == "there is no node that they can compute"


def onnx_model() -> ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [4, 3]), ("w", [3, 2]))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 2])]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs))


def test_loaded_models_have_them_where_they_are_asked_for(installed: Callable[..., list[str]]) -> None:
    installed(Fake("loaded"))
    assert "== libraries ==" not in tc.graph.load(onnx_model()).explain()
    model = tc.graph.load(onnx_model(), libraries=True)
    assert "matmul by loaded" in section(model.explain())
    found = model(np.ones((4, 3), np.float32), np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(np.asarray(found), np.full((4, 2), 3))


def test_the_least_of_several_times() -> None:
    calls: list[str] = []
    first, second = least_times(lambda: calls.append("a"), lambda: calls.append("b"))
    assert 0 <= first < 1
    assert 0 <= second < 1
    assert calls[:4] == ["a", "b", "a", "b"]
    assert calls.count("a") == calls.count("b") >= 8


# --- forms -----------------------------------------------------------------------------------------------------------


def applied(graph: Graph) -> tuple[Call, Form | None, tuple[np.ndarray, ...]]:
    call = next(node for node in graph.nodes if isinstance(node, Call))
    return call, form_of(call, graph.values), tuple(drawn(graph.values[name]) for name in call.operands)


def libraries() -> list[Library]:
    pytest.importorskip("torch")
    from tc.graph.libraries.torch_calls import PyTorch

    return [PyTorch(), SciPy()]


@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.FLOAT64])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7, 13), (13, 5)), ((3000, 130), (130, 5)), ((2, 300), (300, 3000)), ((13,), (13, 5)), ((7, 13), (13,)),
        ((13,), (13,)), ((3, 7, 13), (13, 5)), ((3, 1, 7, 13), (2, 13, 5)),
    ],
)  # fmt: skip
def test_products(left: tuple[int, ...], right: tuple[int, ...], bias: bool, type: ScalarType) -> None:
    bias = bias and min(len(left), len(right)) > 1  # a number for each column
    builder = Builder("one")
    operands = [builder.input("a", type, left), builder.input("b", type, right)]
    if bias:
        operands.append(builder.input("c", type, right[-1:]))
    call, form, arrays = applied(builder.finish([builder.apply(Product(bias=bias), *operands)]))
    assert isinstance(form, MatrixProduct)
    functions = [function for library in libraries() if (function := library.function(form)) is not None]
    assert len(functions) == 1 + (len(left) == len(right) == 2)
    assert [wrong(call, form, function, arrays) for function in functions] == [None] * len(functions)


def test_wrong_elements_of_large_products_are_found() -> None:
    """Only some rows are compared, the last one among them."""
    builder = Builder("one")
    x, y = builder.input("a", F, (3000, 130)), builder.input("b", F, (130, 9))
    call, form, arrays = applied(builder.finish([product(builder, x, y)]))
    assert form is not None

    def spoiled(operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        found = operands[0] @ operands[1]
        found[-1, 3] += 1
        return (found,)

    found = wrong(call, form, spoiled, arrays)
    assert found is not None
    assert found.startswith("an element is ")
    assert wrong(call, form, lambda operands: (operands[0],), arrays) == "it returns float32[3000, 130]"


CONVOLUTIONS = [
    # image, weights, groups, and of each axis: stride, dilation, padding
    ((2, 3, 9), (4, 3, 3), 1, [(1, 1, 1)]),
    ((1, 4, 9, 11), (6, 4, 3, 3), 1, [(1, 1, 1), (2, 1, 0)]),
    ((2, 4, 9, 11), (6, 2, 3, 2), 2, [(2, 1, 1), (1, 2, 2)]),
    ((1, 5, 12, 7), (5, 1, 3, 3), 5, [(1, 1, 1), (1, 1, 1)]),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), 1, [(1, 1, 0), (2, 1, 1), (1, 2, 1)]),
    ((1, 40, 30, 30), (50, 40, 3, 3), 1, [(1, 1, 1), (1, 1, 1)]),
]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("image", "weights", "groups", "axes"), CONVOLUTIONS)
def test_convolutions(
    image: tuple[int, ...], weights: tuple[int, ...], groups: int, axes: list[tuple[int, int, int]], bias: bool
) -> None:
    builder = Builder("one")
    x, w = builder.input("x", F, image), builder.input("w", F, weights)
    b = builder.input("b", F, weights[:1]) if bias else None
    windows = Windows(
        tuple(
            explicit_window(size, kernel, stride, dilation, padding, padding)
            for size, kernel, (stride, dilation, padding) in zip(
                spatial_sizes(len(axes)), weights[2:], axes, strict=True
            )
        )
    )
    call, form, arrays = applied(builder.finish([convolution(builder, x, w, b, windows, groups)]))
    assert form is not None
    torch, scipy = libraries()
    assert scipy.function(form) is None
    function = torch.function(form)
    assert function is not None
    assert wrong(call, form, function, arrays) is None


@pytest.mark.parametrize("padding", [(1, 0), (0, 2)])
def test_padding_on_one_side_is_not_for_libraries(padding: tuple[int, int]) -> None:
    builder = Builder("one")
    x, w = builder.input("x", F, (1, 2, 9)), builder.input("w", F, (3, 2, 3))
    windows = Windows((explicit_window("L", 3, 1, 1, *padding),))
    assert applied(builder.finish([convolution(builder, x, w, None, windows)]))[1] is None


def test_other_types_and_empty_operands_are_not_for_libraries() -> None:
    for type, rows in ((ScalarType.FLOAT16, 4), (ScalarType.INT32, 4), (F, 0)):
        builder = Builder("one")
        x, y = builder.input("a", type, (rows, 3)), builder.input("b", type, (3, 5))
        assert applied(builder.finish([product(builder, x, y)]))[1] is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", True),
        ("def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(n,m) +=! A(m,k) * B(k,n) }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! B(k,n) * A(m,k) }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) max=! A(m,k) * B(k,n) }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) + B(k,n) }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) where k in 1:K }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) where m in 0:3 }", False),
        ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) where m <= n }", False),
        ("def f(float(M) A, float(M) B) -> (C) { C(m) = A(m) * B(m) }", False),
    ],
)
def test_products_in_definitions(text: str, found: bool) -> None:
    builder = Builder("one")
    program = program_of(text)
    ranks = [len(tensor.shape) for tensor in program.tensors if tensor.name in program.arguments]
    operands = [builder.input(f"x{number}", F, (5, 5)[:rank]) for number, rank in enumerate(ranks)]
    form = applied(builder.finish(list(builder.call(text, *operands))))[1]
    assert form == (MatrixProduct(F, (5, 5), (5, 5), False, (5, 5)) if found else None)


def test_constants_views_and_read_only_memory(installed: Callable[..., list[str]]) -> None:
    """Weights that are constants are those that results are compared with; PyTorch says nothing of them."""
    installed(*libraries())
    random = np.random.default_rng(0)
    weights = random.standard_normal((7, 20), np.float32)
    builder = Builder("layer")
    x, w = builder.input("x", F, (9, 20)), builder.constant(weights, "w")
    turned = builder.permute(builder.slice(x, (8, 0), (-1, 1), (9, 20)), (0, 1))
    graph = builder.finish([product(builder, turned, builder.permute(w, (1, 0)))])
    (name,) = hosts(graph)
    assert re.fullmatch(r"matmul by (PyTorch|SciPy) .*", name)
    array = random.standard_normal((9, 20), np.float32)
    array.flags.writeable = False
    found = np.asarray(Model.of(graph, Settings(libraries=True))(array))
    np.testing.assert_allclose(found, array[::-1] @ weights.T, rtol=1e-5, atol=1e-5)
