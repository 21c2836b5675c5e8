"""``python -m benchmarks models``: contenders in processes apart, and results that are compared."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from benchmarks.__main__ import main
from benchmarks.models import DifferentError, Found, Model, _arrays, _compare, _ours, _planning, _Process


def test_a_model_with_shapes() -> None:
    assert Model.parse("a/b.onnx=1x3,2") == Model(Path("a/b.onnx"), ((1, 3), (2,)))
    assert Model.parse("b.onnx") == Model(Path("b.onnx"), ())


def test_a_row_of_the_table() -> None:
    found = Found(Model(Path("a/layer.onnx"), ()), 3, 0.1, 0.5, 0.001, 0.002)
    assert found.line.split() == ["layer", "3", "100", "500", "1.00", "2.00", "2.00"]


def test_open_sizes_are_1() -> None:
    arrays = _arrays(Model(Path("x"), ((4,),)), {"a": ("float32", ("N",)), "b": ("int64", ("N", 3))})
    assert arrays["a"].shape == (4,)
    assert arrays["b"].shape == (1, 3)
    assert arrays["b"].dtype == np.int64


def test_ours_is_ready_after_the_first_call(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
    )
    path = tmp_path / "relu.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    call, (result,), kernels = _ours(Model(path, ((2, 3),)), 2)
    assert kernels == 1
    assert result.min() >= 0
    call()
    assert _planning(Model(path, ((2, 3),))) > 0


def test_plans_that_depend_on_contents_are_not_timed(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [6]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "reshape.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    assert math.isnan(_planning(Model(path, ())))


def test_results_that_differ(tmp_path: Path) -> None:
    model = Model(Path("layer.onnx"), ())
    np.savez(tmp_path / "ours.npz", np.ones(3, np.float32))
    np.savez(tmp_path / "onnxruntime.npz", np.ones(3, np.float32))
    _compare(model, tmp_path)
    np.savez(tmp_path / "onnxruntime.npz", np.zeros(3, np.float32))
    with pytest.raises(DifferentError, match="layer: the results called arr_0 differ"):
        _compare(model, tmp_path)


@pytest.mark.parametrize("cache", [None, Path("tuned.db")])
def test_contenders_only_read_the_kernels_of_a_cache(cache: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, str]] = []
    monkeypatch.setenv("TC_CACHE_MODE", "off")
    monkeypatch.setattr("subprocess.Popen", lambda *_, env, **__: found.append(env))
    _Process(Model(Path("x.onnx"), ()), "ours", 2, Path("folder"), cache)
    (own,) = found
    assert own["TC_CACHE_MODE"] == ("off" if cache is None else "warn")
    assert cache is None or own["TC_CACHE"] == "tuned.db"


def test_a_cache_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["models", "x.onnx", "--cache", str(tmp_path / "tuned.db")])
    assert f"there is no cache {tmp_path / 'tuned.db'}" in capsys.readouterr().err
