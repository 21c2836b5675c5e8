"""Exported models: what programs without Python compute, and what they refuse."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tc.graph
from tc.base.types import ScalarType
from tc.commands.export_model import main
from tc.graph.export.names import distinct_names, owner_of
from tc.graph.ir.graph import Graph
from tc.graph.model import Model
from tc.graph.operators.joining import concatenated
from tc.graph.settings import Settings
from tests.fuzz.graph_programs import drawn
from tests.graph.exported import STRICT, built, check, described, results, same_bits, shell
from tests.turns import every

F = ScalarType.FLOAT32
STRING = re.compile(r'"(\\.|[^"\\])*"')
CALLS = Path(__file__).with_name("exported_calls.c")
LAYER = """def layer(float(N,K) X, float(K,C) W, float(C) b) -> (Z) {
    S(n,c) +=! X(n,k) * W(k,c)
    Z(n,c) = S(n,c) + b(c)
}"""
SOFTMAX = """def softmax(float(N,C) Z) -> (P) {
    M(n) max=! Z(n,c)
    E(n,c) = exp(Z(n,c) - M(n))
    S(n) +=! E(n,c)
    P(n,c) = E(n,c) / S(n)
}"""
PICK = "def pick(float(E,D) T, int64(B) I) -> (O) { O(b,d) = T(I(b),d) }"
random = np.random.default_rng(20261129)


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


def head() -> Graph:
    """A layer and a softmax, whose weights are constants."""
    builder = tc.graph.Builder("head")
    x = builder.input("X", F, (8, 30))
    w, b = (
        builder.constant(np.cos(np.arange(n, dtype=np.float32)).reshape(s)) for n, s in ((300, (30, 10)), (10, (10,)))
    )
    (made,) = builder.call(LAYER, x, w, b)
    return builder.finish(builder.call(SOFTMAX, made))


def picking() -> Graph:
    builder = tc.graph.Builder("picking")
    places = builder.input("places", ScalarType.INT64, (2,))
    table = builder.constant(np.arange(36, dtype=np.float32).reshape(9, 4))
    return builder.finish(builder.call(PICK, table, places))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models, ``head`` and ``other``, and their libraries."""
    folder = tmp_path_factory.mktemp("exported")
    for name, graph in (("head", head()), ("other", picking())):
        Model.of(graph).export(folder / name)
        built(folder / name)
    return folder


# --- programs without Python -----------------------------------------------------------------------------------------


def test_the_program_computes_what_the_model_does(exported: Path) -> None:
    x = floats(8, 30)
    for threads in ("1", "2"):
        same_bits(results(exported / "head", [x], threads), Model.of(head())(x))


def test_programs_call_models_from_many_threads(exported: Path, tmp_path: Path) -> None:
    for name in ("head", "other"):
        (tmp_path / name).symlink_to(exported / name)
    (tmp_path / "cut.bin").write_bytes((exported / "head" / "weights.bin").read_bytes()[:-1])
    shutil.copy(CALLS, tmp_path)
    for libraries in (("head/libhead.a", "other/libother.a"), ("head/libhead_threads.a", "other/libother_threads.a")):
        shell(tmp_path, "cc", *STRICT, CALLS.name, *libraries, "-lm", "-pthread", "-o", "calls")
        said = shell(tmp_path, "./calls").splitlines()
        assert said == [
            "right",
            *["a pointer is NULL, or the arena is not aligned to 64 bytes"] * 3,
            "no error",
            "an unknown error",
            "the file of the weights cannot be read",
            *["the file is not the weights.bin of this export"] * 3,
            "pick_O = pick(constant, places): an index into dimension 0 of T is outside of 0:9",
        ]


def test_the_header_compiles_in_other_languages(exported: Path) -> None:
    text = (exported / "head" / "model.h").read_text()
    assert "//   in_X: float32(8, 30), 960 bytes, `X`, read\n" in text
    assert "//   out_softmax_P: float32(8, 10), 320 bytes, `softmax_P`, written\n" in text
    if shutil.which("c++"):
        (exported / "program.cc").write_text(
            '#include "head/model.h"\nint main() { return head_error(0) == nullptr; }\n'
        )
        shell(exported, "c++", "-Wall", "-Werror", "-fsyntax-only", "program.cc")


def test_the_readme_says_what_there_is(exported: Path) -> None:
    text = (exported / "head" / "README.md").read_text()
    assert "2 kernels in 2 calls" in text
    assert "| `in_X` | read | float32(8, 30) | 960 | `X` |\n" in text
    files = {path.name for path in (exported / "head").iterdir()}
    named = {name for name in described(exported / "head")["files"] if name != "export.json"}
    assert named <= files
    assert all(f"`{name}`" in text or name.startswith("head_") or name in ("Makefile", "README.md") for name in named)
    assert f"`{shell(exported / 'head', 'sha256sum', 'weights.bin').split()[0]}`" in text


def test_the_weights_have_a_table(exported: Path) -> None:
    found = described(exported / "head")["weights"]
    data = (exported / "head" / "weights.bin").read_bytes()
    assert len(data) == found["bytes"]
    wanted = head().constants
    for number, tensor in enumerate(found["tensors"]):
        offset, size = np.frombuffer(data, "<u8", 2, 64 + 16 * number).tolist()
        assert (offset, size) == (tensor["offset"], tensor["bytes"])
        assert offset % 64 == 0
        held = np.frombuffer(data, tensor["type"], size // 4, offset).reshape(tensor["shape"])
        np.testing.assert_array_equal(held, wanted[tensor["name"]])


@pytest.mark.parametrize(
    "settings", every(2, [Settings(), Settings(rules=(), fuse=False)]), ids=("rewritten", "as it is")
)
def test_values_lie_where_the_plan_says(settings: Settings, tmp_path: Path) -> None:
    """Views of the arena, of inputs and of constants; outputs that are those, or parts of others, or twice the same."""
    builder = tc.graph.Builder("places")
    x = builder.input("x", F, (6, 8))
    bits = builder.input("bits", ScalarType.BOOL, (3,))
    halves = builder.constant(np.arange(5).astype(np.float16), "halves")
    (twice,) = builder.call("def twice(float(N,M) A) -> (B) { B(i,j) = 2 * A(i,j) }", x)
    (sums,) = builder.call(
        "def sums(float(N,M) A, float(M,N) B) -> (C) { C(i) +=! A(i,j) * B(j,i) }",
        builder.slice(twice, (5, 1), (-2, 1), (3, 7)),
        builder.slice(builder.permute(x, (1, 0)), (1, 0), (1, 2), (7, 3)),
    )
    (more,) = builder.call("def more(float(N) A) -> (B) { B(i) = A(i) + 1 }", sums)
    (last,) = builder.call("def last(float(N) A) -> (B) { B(i) = 3 * A(i) }", more)
    (empty,) = builder.call(
        "def none(float(N,M) A) -> (B) { B(i,j) = A(i,j) }", builder.slice(x, (0, 0), (1, 1), (0, 8))
    )
    outputs = [
        builder.permute(twice, (1, 0)),
        builder.slice(twice, (1, 0), (1, 1), (2, 8)),
        builder.reshape(twice, (48,)),
        last,
        last,
        x,
        bits,
        builder.slice(halves, (1,), (1,), (3,)),
        builder.reinterpret(more, ScalarType.INT32),
        empty,
    ]
    graph = builder.finish(outputs)
    given = floats(6, 8), np.array([True, False, True])
    check(Model.of(graph, settings), tmp_path / "places", *given)


def test_parts_of_concatenations_lie_where_the_plan_says(tmp_path: Path) -> None:
    """One in the arena, whose parts have strides, and one that is the array of the caller."""
    builder = tc.graph.Builder("parts")
    x = builder.input("x", F, (2, 3, 20))
    text = "def sums(float(N,C,H) X) -> (Y) { Y(n,c,h) +=! X(n,c,h+i) where i in 0:2 }"
    parts = [builder.call(text, x)[0] for _ in range(3)]
    inner = concatenated(builder, parts[:2], 1)
    (least,) = builder.call("def least(float(N,C,H) X) -> (Y) { Y(n,h) min=! X(n,c,h) }", inner)
    whole = concatenated(builder, [parts[2], builder.call(text, inner)[0]][:1] * 2, 0)
    model = Model.of(builder.finish([least, whole]), Settings(rules=()))
    assert "join(" in model.plan().table()
    check(model, tmp_path / "parts", floats(2, 3, 20))


def test_models_may_need_no_kernel(tmp_path: Path) -> None:
    builder = tc.graph.Builder("same")
    x = builder.input("x", F, (3, 4))
    check(Model.of(builder.finish([x, builder.slice(x, (1, 0), (1, 1), (1, 4))])), tmp_path / "same", floats(3, 4))


def test_the_emulator_is_exported(tmp_path: Path) -> None:
    found = check(Model.of(picking(), Settings(target="emulator")), tmp_path / "emulated", np.array([8, 0]))
    (found / "in_places.bin").write_bytes(np.array([0, -1]).tobytes())
    said = shell(found, "./main", "weights.bin", "1", "in_places.bin", "out_pick_O.bin", status=1)
    assert said == "the model: pick_O = pick(constant, places): an index into dimension 0 of T is outside of 0:9\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int, tmp_path: Path) -> None:
    found = drawn(seed)
    settings = Settings(rules=(), fuse=False) if seed % 2 else Settings()
    check(Model.of(found.graph, settings), tmp_path / "drawn", *found.inputs.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "resnet50", "shufflenet", "densenet121"])
def test_light_classics(name: str, tmp_path: Path) -> None:
    import onnx

    path = Path(onnx.__file__).with_name("backend") / "test" / "data" / "light" / f"light_{name}.onnx"
    model = tc.graph.load(path)
    shapes = [[int(str(extent)) for extent in declared.shape or ()] for declared in model.inputs]
    check(model, tmp_path / name, *(random.random(shape, np.float32) for shape in shapes))


# --- names -----------------------------------------------------------------------------------------------------------

NAMES = (
    "*/ int evil; /*",
    "\\\n#include </etc/passwd>\n??/\nint evil;",
    '"); evil("',
    "`|<script>](x)",
    "\u202eover\x1b[31m",
    "int",
    "in",
)


def hostile(first: str, second: str) -> tc.graph.Model:
    """A model in which everything is called so."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in (first, second)]
    outputs = [helper.make_tensor_value_info(f"{first}{second}", TensorProto.FLOAT, [2, 3])]
    held = numpy_helper.from_array(np.ones((2, 3), np.float32), f"{second}{first} ")
    nodes = [
        helper.make_node("Add", [first, second], ["sum"], name=first),
        helper.make_node("Mul", ["sum", f"{second}{first} "], [f"{first}{second}"], name=second),
    ]
    return tc.graph.load(helper.make_model(helper.make_graph(nodes, first or "g", inputs, outputs, [held])))


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        folder = tmp_path / "inside" / f"{number} *\\\n;`$(id)??/"
        model = hostile(name, f"{name} 2")
        model.export(folder)
        assert [path.name for path in folder.parent.iterdir()] == [folder.name]
        sources = ("model.c", "kernels.c", "main.c")
        shell(folder, "cc", *STRICT, "-fsyntax-only", *sources)
        code = STRING.sub("", "".join(shell(folder, "cc", "-E", "-P", source) for source in sources))
        assert re.search(r"\b(evil|passwd|script)\b", code) is None
        texts = [path.read_text() for path in folder.iterdir() if path.suffix != ".bin"]
        assert all(c.isprintable() or c in "\n\t" for text in texts for c in text)
        shutil.rmtree(folder)


@pytest.mark.slow
def test_models_with_hostile_names_run(tmp_path: Path) -> None:
    check(hostile("*/ \\", '"'), tmp_path / "0 model", floats(2, 3), floats(2, 3))


def test_names_are_those_of_c() -> None:
    assert [owner_of(name) for name in ("ResNet-50", "v1.2", "2024", "tc", "tc_x", "", "*", "__a__", "exp")] == [
        "ResNet_50", "v1_2", "model_2024", "model_tc", "model_tc_x", "model", "model", "a", "exp",
    ]  # fmt: skip
    names = ["x", "x", "x_2", "x/2", "", "", "2", "é", "a" * 300]
    found = distinct_names(names, "in")
    assert found == ("in_x", "in_x_2", "in_x_2_2", "in_x_2_3", "in", "in_2", "in_2_2", "in_3", "in_" + "a" * 48)
    assert len(set(found)) == len(names)


# --- the command -----------------------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> str:
    assert main([*map(str, arguments)]) == status
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_the_command_exports_models(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes: Sequence[Any] = [helper.make_node("Add", ["a=1", "b"], ["c"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("a=1", "b")]
    outputs = [helper.make_tensor_value_info("c", TensorProto.FLOAT, ["N", 3])]
    model, folder = tmp_path / "add.onnx", tmp_path / "add"
    model.write_bytes(helper.make_model(helper.make_graph(nodes, "add", inputs, outputs)).SerializeToString())
    assert (
        run(capsys, 0, model, folder, "--shape", "4,3", "--shape", "b=4, 3") == f"wrote {folder}; see README.md there\n"
    )
    assert [one["shape"] for one in described(folder)["inputs"]] == [[4, 3], [4, 3]]
    assert run(capsys, 0, model, folder, "--shape", "b=5,3", "--shape", "a=1=5,3").startswith("wrote ")
    assert [one["c_name"] for one in described(folder)["inputs"]] == ["in_a_1", "in_b"]
    assert run(capsys, 2, model, folder, "--shape", "b=4,x") == (
        "tc-export: shapes are written as x=1,3,224,224, got 'b=4,x'\n"
    )
    assert run(capsys, 2, model, folder, "--shape", "b=4,3", "--shape", "b=4,3") == (
        "tc-export: an input has two shapes; give each --shape once\n"
    )
    assert run(capsys, 2, model, folder).startswith("tc-export: ")
    assert run(capsys, 2, tmp_path / "none.onnx", folder) == (
        f"tc-export: {tmp_path}/none.onnx cannot be read: No such file or directory\n"
    )
