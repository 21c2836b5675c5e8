"""Models whose plans are kept, and processes that call them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.programs import run

# What no process imports that finds all in the cache.
HEAVY = ("onnx", "islpy", "lark", "sqlalchemy", "multiprocessing", "tc.graph.rewrite.rules", "tc.compiler")


def write_models(folder: Path, seed: int = 0) -> None:
    """Models of all kinds, with weights of a seed; of those that share a name, the shapes are the same."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    def save(name: str, nodes: list[Any], inputs: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        entries = [
            helper.make_tensor_value_info(own, TensorProto.INT64 if own == "target" else TensorProto.FLOAT, shape)
            for own, shape in inputs.items()
        ]
        weights = [numpy_helper.from_array(array, own) for own, array in arrays.items()]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(nodes, name, entries, outputs, weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString())
        return made

    layers = [helper.make_node("Gemm", ["x", "w", "b"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    save("layer", layers, {"x": ["N", 70]}, {"w": normal(70, 80), "b": normal(80)})
    normalized = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    folded = {name: normal(80) for name in ("scale", "shift", "mean")} | {"variance": normal(80) ** 2 + 1}
    save("folded", normalized, {"x": [1, 64, 3, 5]}, {"w": normal(80, 64, 1, 1), **folded})
    save("reshaped", [helper.make_node("Reshape", ["x", "target"], ["y"])], {"x": [3, 4], "target": [2]}, {})
    positive = [helper.make_node("NonZero", ["x"], ["z"]), helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT)]
    save("hosted", positive, {"x": [3, 4]}, {})
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(name, ["x"], [f"{name}_y"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)],
        )
        for name in ("Neg", "Abs")
    }
    branched = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "bound"], ["greater"]),
        helper.make_node("Not", ["greater"], ["less"]),
        helper.make_node("Not", ["less"], ["decided"]),  # rewriting gives it the name of what it is
        helper.make_node(
            "If", ["decided"], ["y"], then_branch=branches["Neg_branch"], else_branch=branches["Abs_branch"]
        ),
    ]
    save("branched", branched, {"x": [3, 4]}, {"bound": np.zeros((), np.float32)})
    halves = [helper.make_node("MatMul", ["x", name], [f"{name}x"]) for name in ("v", "w")]
    joined = [
        *halves,
        helper.make_node("Concat", ["vx", "wx", "x"], ["c"], axis=1),
        helper.make_node("Neg", ["c"], ["y"]),
    ]
    save("joined", joined, {"x": [3, 70]}, {"v": normal(70, 80), "w": normal(70, 40)})
    external = save("external", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [3, 70]}, {"w": normal(70, 80)})
    (tensor,) = external.graph.initializer
    (folder / "external.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "external.bin"
    (folder / "external.onnx").write_bytes(external.SerializeToString())


def calls() -> dict[str, tuple[str, dict[str, np.ndarray]]]:
    """By a name, the file of a model and the inputs of a call."""
    x = np.linspace(-2, 2, 3 * 70, dtype=np.float32).reshape(3, 70)
    image = np.linspace(-1, 1, 64 * 15, dtype=np.float32).reshape(1, 64, 3, 5)
    small = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    head = Path(__file__).parent / "data" / "mnist_head.pb"
    return {
        "layer": ("layer.onnx", {"x": x}),
        "layer of one row": ("layer.onnx", {"x": x[:1]}),
        "folded": ("folded.onnx", {"x": image}),
        "reshaped": ("reshaped.onnx", {"x": small, "target": np.array([2, 6])}),
        "reshaped otherwise": ("reshaped.onnx", {"x": small, "target": np.array([12, -1])}),
        "external": ("external.onnx", {"x": x}),
        "joined": ("joined.onnx", {"x": x}),
        "branched": ("branched.onnx", {"x": small + 1}),
        "branched otherwise": ("branched.onnx", {"x": small - 1}),
        "graphdef": (str(head), {}),
        "hosted": ("hosted.onnx", {"x": small}),
    }


class Process:
    """What a process found: by name of a call its result, and how many graphs were made and kernels compiled."""

    def __init__(self, folder: Path, printed: str) -> None:
        said = json.loads(printed.splitlines()[-1])
        self.heavy: list[str] = said["heavy"]
        self.made: dict[str, int] = said["made"]
        self.compiled: dict[str, int] = said["compiled"]
        with np.load(folder / "results.npz") as found:
            self.results = dict(found)


def process(
    folder: Path, cache: Path, names: list[str], *, mode: str = "store", change: str = "lambda m: m"
) -> Process:
    """A new process that calls models; ``change``: makes another model of each."""
    program = f"from tests.graph.kept_models import main; main({str(folder)!r}, {names!r}, {change})"
    environment = {"TC_CACHE": str(cache), "TC_CACHE_MODE": mode}
    return Process(folder, run(program, environment=environment))


def main(folder: str, names: list[str], change: Callable[[Any], Any]) -> None:
    import tc.graph

    made, compiled = counted()
    results = {}
    for name in names:
        file, inputs = calls()[name]
        path = Path(folder) / file
        made.append(0)
        compiled.append(0)
        model = change(tc.graph.load(path))
        results[name] = model.run(model.outputs, inputs or _placeholders(model))[model.outputs[0]]
    np.savez(Path(folder) / "results.npz", **results)
    said = {
        "made": dict(zip(names, made, strict=True)),
        "compiled": dict(zip(names, compiled, strict=True)),
        "heavy": [name for name in HEAVY if name in sys.modules],
    }
    print(json.dumps(said))


def _placeholders(model: Any) -> dict[str, np.ndarray]:
    found = {}
    for one in model.inputs:
        shape = [extent if isinstance(extent, int) else 5 for extent in one.shape or ()]
        found[one.name] = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return found


def _counting(method: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        counts[-1] += 1
        return method(*given)

    return call


def counted() -> tuple[list[int], list[int]]:
    """Lists in which the last number grows with every graph that is made, and every kernel that is compiled."""
    from tc.api.kernels import Kernels
    from tc.graph.run.stages import Stages

    made: list[int] = []
    compiled: list[int] = []

    Stages._prepared = _counting(Stages._prepared, made)  # type: ignore[method-assign]
    for name in ("compile", "built"):
        setattr(Kernels, name, _counting(getattr(Kernels, name), compiled))
    return made, compiled
