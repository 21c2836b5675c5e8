"""``tc-tune model.onnx``: models by their contents, sizes of open dimensions, shapes of inputs, files of jobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tc.base.errors import OptionsError
from tc.commands.jobs import read_job_file
from tc.commands.models import ModelRequest, is_model, parse_shapes
from tc.commands.tune import main
from tests.graph.graphdefs import binary, text
from tests.graph.mnist_graphdef import forward

MESSAGE = "tc-tune: {}"


def model(folder: Path, *shape: int | str, name: str = "relu.onnx") -> Path:
    """``y = relu(x)``."""
    declared = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape or None) for n in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", declared[:1], declared[1:])
    (folder / name).write_bytes(helper.make_model(graph).SerializeToString())
    return folder / name


def test_models_are_known_by_their_contents(tmp_path: Path) -> None:
    contents = {
        "one": model(tmp_path, 8).read_bytes(),
        "two": binary(forward()),
        "three": text(forward()).encode(),
        "four": b"\n# a text\ndef f(float(N) x) -> (y) { y(i) = x(i) }",
        "five": b"\xff\xfe",
        "six": b"",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert [name for name in contents if is_model(tmp_path / name)] == ["one", "two", "three"]
    assert not is_model(tmp_path / "none")


def graphs(file: Path, *sizes: dict[str, int], shapes: tuple[dict[str, tuple[int, ...]], ...] = ()) -> list[str]:
    found = ModelRequest("here", file, sizes, shapes).graphs("cpu")
    return [f"{name}: {[graph.values[own].shape for own in graph.inputs]}" for name, graph, _ in found]


def test_open_sizes_have_names_and_shapes_are_those_of_inputs(tmp_path: Path) -> None:
    file = model(tmp_path, "N", 3)
    assert graphs(file, {"N": 2}, {"N": 5}) == ["relu.onnx(N=2): [(2, 3)]", "relu.onnx(N=5): [(5, 3)]"]
    assert graphs(file, shapes=({"x": (4, 3)},)) == ["relu.onnx(x=4x3): [(4, 3)]"]
    assert graphs(model(tmp_path, 8)) == ["relu.onnx(): [(8,)]"]
    (tmp_path / "head.pb").write_bytes(binary(forward()))
    assert graphs(tmp_path / "head.pb", {"x.0": 8, "y_.0": 8}) == [
        "head.pb(x.0=8,y_.0=8): [(8, 784), (8, 10), (784, 10), (10,)]"
    ]


def test_shapes_on_the_command_line() -> None:
    assert parse_shapes(["x=1x3x224x224", "a=b=7", "s = scalar"]) == {"x": (1, 3, 224, 224), "a=b": (7,), "s": ()}
    for wrong in ("x", "x=", "=1", "x=1,2", "x=1x", "x=-1", "x=\u0663", "x=1X2"):
        message = f"a shape is written as input=1x3x224x224, or input=scalar, got {wrong!r}"
        with pytest.raises(OptionsError, match=f"^{re.escape(message)}$"):
            parse_shapes([wrong])
    with pytest.raises(OptionsError, match="x has two shapes; tune for both with two commands, or in a file of jobs"):
        parse_shapes(["x=1", "x=2"])


def test_what_models_cannot_be_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cache = ("--cache", str(tmp_path / "tuned.db"))
    file, unknown = model(tmp_path, "N", "M"), model(tmp_path, name="unknown.onnx")
    (tmp_path / "k.tc").write_text("def f(float(N) x) -> (y) { y(i) = x(i) }")
    half = file.read_bytes()[: len(file.read_bytes()) // 2]
    (tmp_path / "half.onnx").write_bytes(half)
    for arguments, message in (
        ((file,), f"{file}: the model needs the sizes N, M; missing: N, M"),
        ((file, "--size", "N=2"), f"{file}: the model needs the sizes N, M; missing: M"),
        ((file, "--size", "N=2,M=3,K=4"), f"{file}: the model has no open size 'K'; it has N, M"),
        ((file, "--size", "N=2,MM=3"), f"{file}: the model has no open size 'MM'; did you mean 'M'?"),
        ((file, "--size", "N=..2,M=3"), f"{file}: N of a model cannot stay open; give a number"),
        ((file, "--shape", "x=2x3", "--size", "N=2"), f"{file}: the model has no open size 'N'; it has none"),
        ((file, "--shape", "xy=2"), f"{file}: the model has no input 'xy'; did you mean 'x'?"),
        (
            (unknown,),
            f"{unknown}: the model does not declare the shape of x; give one, as in --shape x=1x3x224x224",
        ),
        ((file, "--definition", "f"), "models have no definitions, types or gradients to choose; leave these out"),
        ((file, "--dtype", "float64"), "models have no definitions, types or gradients to choose; leave these out"),
        ((file, "--gradient", "all"), "models have no definitions, types or gradients to choose; leave these out"),
        (
            (tmp_path / "k.tc", "--shape", "x=2"),
            f"{tmp_path}/k.tc is no model; sizes of definitions are given with -",
        ),
        ((tmp_path / "half.onnx", "--size", "N=2"), f"{tmp_path}/half.onnx"),
    ):
        assert main([*map(str, arguments), *cache]) == 2
        assert capsys.readouterr().err.startswith(MESSAGE.format(message)), arguments
    assert not (tmp_path / "tuned.db").exists()


WRONG = {
    "model = 5": "{path} names no kernels; write a table [[kernel]] with file, definition and sizes for each, or a "
    "table [[model]] with file, and sizes or shapes",
    "model = [5]": "{path}: model 1 must be a table, got 5",
    "[[model]]\nsizes = {{}}": "{path}: model 1 needs a file",
    "[[model]]\nfile = 1": "{path}: model 1 needs a file",
    '[[model]]\nfile = "m"\nshape = {{}}': "{path}: model 1 has an unknown setting 'shape'; did you mean 'shapes'?",
    '[[model]]\nfile = "m"\nshapes = [1]': "{path}: model 1: shapes must be tables of lists of integers, such as "
    "{{x = [1, 3, 224, 224]}}, got [1]",
    '[[model]]\nfile = "m"\nshapes = {{x = [-1]}}': "{path}: model 1: shapes must be tables of lists of integers, such "
    "as {{x = [1, 3, 224, 224]}}, got {{'x': [-1]}}",
    '[[model]]\nfile = "m"\nshapes = {{x = [true]}}': "{path}: model 1: shapes must be tables of lists of integers, "
    "such as {{x = [1, 3, 224, 224]}}, got {{'x': [True]}}",
    '[[model]]\nfile = "relu.onnx"\nsizes = {{K = 1}}': "{path}: model 1: the model has no open size 'K'; it has N",
    '[[model]]\nfile = "none.onnx"': "{folder}/none.onnx cannot be read: No such file or directory",
}


@pytest.mark.parametrize("content", WRONG)
def test_what_models_in_a_job_file_cannot_be(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(content.format())
    model(tmp_path, "N")
    assert main([str(path), "--cache", str(tmp_path / "t.db")]) == 2
    assert capsys.readouterr().err == MESSAGE.format(WRONG[content].format(path=path, folder=tmp_path)) + "\n"


def test_a_job_file_may_name_models_beside_kernels(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    model(tmp_path, "N", 3)
    path.write_text(
        '[[model]]\nfile = "relu.onnx"\nsizes = [{N = 2}, {N = 4}]\n[[model]]\nfile = "relu.onnx"\n'
        "shapes = {x = [9, 3]}\n"
    )
    found = read_job_file(path)
    assert found.requests == ()
    assert [name for request in found.models for name, *_ in request.graphs("cpu")] == [
        "relu.onnx(N=2)",
        "relu.onnx(N=4)",
        "relu.onnx(x=9x3)",
    ]


def test_a_model_is_tuned_and_goes_on_where_it_stopped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, cache = model(tmp_path, "N", 3), tmp_path / "tuned.db"
    (tmp_path / "jobs.toml").write_text(
        'budget = "2 trials"\njobs = 1\n[[model]]\nfile = "relu.onnx"\nsizes = {N = 7}\n'
    )
    assert main([str(tmp_path / "jobs.toml"), "--cache", str(cache)]) == 0
    printed = capsys.readouterr()
    whole, kernel = printed.out.splitlines()
    times = r"[\d.]+ \ws to [\d.]+ \ws, [\d.]+x"
    assert re.fullmatch(rf"relu\.onnx\(N=7\): 1 kernel, 1 different: {times} the default", whole)
    assert re.fullmatch(rf"    1 x relu\(7x3\): {times}, 2 trials", kernel)
    assert "relu(7x3): relu on cpu:" in printed.err
    arguments = ["--size", "N=7", "--budget", "3 trials", "--jobs", "1", "--cache", str(cache)]
    assert main([str(file), *arguments]) == 0
    printed = capsys.readouterr()
    assert "encodings; 2 trials are known from before" in printed.err
    assert printed.out.splitlines()[1].endswith(", 3 trials")


def test_kernels_that_fail_end_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_given: object) -> None:
        raise OptionsError("no")

    monkeypatch.setattr("tc.commands.tune.tuning", fail)
    assert main([str(model(tmp_path, 8)), "--cache", str(tmp_path / "tuned.db"), "--quiet"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "relu.onnx(): 1 kernel, 1 different: 0 ns to 0 ns, 1.00x the default",
        "    1 x relu(8): failed: no",
    ]
