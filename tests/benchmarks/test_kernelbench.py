"""KernelBench's problems: sizes that fit, what is compared, what is written."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.command_line import command_line
from benchmarks.kernelbench.command import run, write
from benchmarks.kernelbench.cost import Cost
from benchmarks.kernelbench.exact import exact
from benchmarks.kernelbench.harness import Result, measured, problems, summary
from benchmarks.kernelbench.problem import Limits, Problem, UnfitError, cost_of, scaled
from benchmarks.kernelbench.worker import WrongError, error_of, require_close

SCALED = """
import torch

class Model(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, features)

    def forward(self, x):
        return self.norm(x)

batch_size = 2048 * 2
features = 512
num_groups = 8
shape = (512, 1024)

def get_inputs():
    return [torch.rand(batch_size, features, *shape)]

def get_init_inputs():
    return [num_groups]
"""
BROKEN = SCALED.replace("self.norm(x)", "self.norm(x[0, 0])")
PLAIN = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x * 2)

def get_inputs():
    return [torch.rand(33, 17)]

def get_init_inputs():
    return []
"""


def checkout(folder: Path, **files: str) -> Path:
    level = folder / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for name, text in files.items():
        (level / f"{name.lstrip('_')}.py").write_text(text)
    return folder


def test_problems_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = checkout(tmp_path, _10_c=PLAIN, _2_b=PLAIN, _1_a=PLAIN, notes=PLAIN)
    assert [path.stem for path in problems(folder, [1], [])] == ["1_a", "2_b", "10_c"]
    assert [path.stem for path in problems(folder, [1], [10])] == ["10_c"]


def test_the_largest_sizes_are_halved_until_the_model_fits(tmp_path: Path) -> None:
    folder = checkout(tmp_path, _1_a=SCALED)
    problem = scaled(problems(folder, [1], [])[0], Limits(elements=1 << 20))
    found = problem.module()
    (x,) = found["get_inputs"]()
    assert 1 << 18 <= x.numel() <= 1 << 20
    assert problem.sizes["num_groups"] == 8
    assert found["Model"](*found["get_init_inputs"]())(x).shape == x.shape
    assert problem.name == "level1/1_a"
    assert problem.level == 1


def test_sizes_that_must_be_equal_are_halved_together(tmp_path: Path) -> None:
    text = SCALED.replace("torch.rand(batch_size, features, *shape)", "torch.rand(2, 512, 64, *shape)")
    text = text.replace("self.norm(x)", "self.norm(x) @ x").replace("(512, 1024)", "(1024, 1024)")
    problem = scaled(problems(checkout(tmp_path, _1_a=text), [1], [])[0], Limits(elements=1 << 20))
    assert problem.sizes["shape.0"] == problem.sizes["shape.1"] < 1024


def test_models_that_do_not_fit_are_errors(tmp_path: Path) -> None:
    folder = checkout(tmp_path, _1_a=BROKEN, _2_b=SCALED)
    broken, large = problems(folder, [1], [])
    with pytest.raises(UnfitError, match="level1/1_a: the model does not take its own inputs"):
        scaled(broken)
    with pytest.raises(UnfitError, match=r"level1/2_b: [\d,]+ elements and 0 operations at the least"):
        scaled(large, Limits(elements=10, most_elements=10))
    (result,) = measured([broken], threads=1, seeds=1, rounds=0)
    assert result.wrong == "level1/1_a: the model does not take its own inputs"


def test_a_module_that_is_not_installed_is_named(tmp_path: Path) -> None:
    folder = checkout(tmp_path, _1_a="import a_module_that_is_not_there\n" + PLAIN)
    (result,) = measured(problems(folder, [1], []), threads=1, seeds=1, rounds=0)
    assert result.wrong == "level1/1_a: imports a_module_that_is_not_there, which is not installed"


class Drawing(torch.nn.Module):
    """Makes float32 tensors of its own: numbers that are no buffers, and random ones."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.thirds = torch.ones(3) / 3

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.randn(3) + torch.randn_like(x) + torch.rand(3, 3, dtype=torch.float32)
        state = torch.dropout(state + torch.empty(3).normal_(), 0.5, True)
        rows = torch.zeros(3, 3)
        rows[1] = x[0]
        return self.layer(x) + self.thirds + state + rows.add_(x) + self.thirds.copy_(x[1]), torch.arange(3)


def test_the_exact_results_are_of_the_numbers_that_the_model_draws() -> None:
    model, x = Drawing(), torch.rand(3, 3)
    before = copy.deepcopy(model)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        narrow, numbers = model(x)
        state = torch.get_rng_state()
        torch.manual_seed(0)
        wide, same = exact(before, [x])
        assert torch.get_rng_state().equal(state)
    assert wide.dtype is torch.float64
    assert 0 < error_of(narrow, wide) < 1e-6
    assert same.equal(numbers)
    assert model.layer.weight.dtype is torch.float32


def test_contenders_are_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    given = command_line().parse_args(["kernelbench", "kb", "--contenders", "ours"])
    assert given.contenders == ("ours",)
    with pytest.raises(SystemExit):
        command_line().parse_args(["kernelbench", "kb", "--contenders", "ours,theirs"])
    assert "contenders are inductor and ours, got 'ours,theirs'" in capsys.readouterr().err


def test_folders_without_problems_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^no problems of these levels in .*: give a checkout of KernelBench$"):
        run(command_line().parse_args(["kernelbench", str(tmp_path), "--level", "2"]))


def test_errors_are_parts_of_the_greatest_element() -> None:
    nan = float("nan")
    assert error_of(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 5.0])) == pytest.approx(0.2)
    assert error_of(torch.tensor([nan, 4.0]), torch.tensor([nan, 4.0])) == 0
    assert error_of(torch.tensor([nan, 4.0]), torch.tensor([1.0, 4.0])) == float("inf")
    assert error_of(torch.ones(2), torch.ones(3)) == float("inf")
    assert error_of(torch.tensor([1, 2]), torch.tensor([1, 3])) == float("inf")
    assert error_of(torch.ones(0), torch.ones(0)) == 0


def result(name: str, ours: float, left: dict[str, int] | None = None, wrong: str = "") -> Result:
    seconds = {"eager": 1e-3, "inductor": 5e-4, "ours": ours}
    return Result(name, {"n": 4}, seconds, 1e-7, left or {}, 0.5, wrong)


def test_the_table_says_what_is_wrong_left_or_suspect(tmp_path: Path) -> None:
    results = [
        replace(result("level1/1_a", 1e-3), breaks={"ours": 2, "inductor": 1}),
        result("level1/2_b", 5e-5, {"aten.rand": 1}),
        result("level1/3_c", 1e-3, wrong="seed 0: error 1.0e-01"),
    ]
    assert "left: aten.rand; suspect" in results[1].line
    assert results[2].ratio is None
    assert "seed 0: error 1.0e-01" in results[2].line
    assert results[0].line.endswith("graph breaks: 2, Inductor 1")
    assert result("level1/4_d", 1e-3, {"aten.sort": 1}).random_only is False
    assert summary(results) == (
        "level1: 2 of 3 right, 2 without operators of PyTorch but random numbers, 1 with more graph breaks; "
        "over eager 4.47, at least 1.00; Inductor 2.00"
    )
    write(results, tmp_path / "found", 2)
    found = json.loads((tmp_path / "found" / "kernelbench-1.json").read_text())
    assert [one["name"] for one in found["problems"]] == ["level1/1_a", "level1/2_b", "level1/3_c"]
    assert found["problems"][0]["breaks"] == {"ours": 2, "inductor": 1}
    assert (tmp_path / "found" / "kernelbench-1.png").stat().st_size > 1000


def test_problems_that_are_measured_again_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    """On the same machine with as many threads; otherwise the file is a new one."""

    def found(*names: str, seconds: float, threads: int = 2) -> dict[str, float]:
        write([Result(name, {}, {"eager": seconds, "ours": 1.0}, 0.0, {}, 0.1) for name in names], tmp_path, threads)
        problems = json.loads((tmp_path / "kernelbench-2.json").read_text())["problems"]
        return {problem["name"]: problem["seconds"]["eager"] for problem in problems}

    found("level2/1_a", "level2/2_b", "level2/10_c", seconds=1.0)
    again = found("level2/2_b", "level2/3_d", seconds=2.0)
    assert list(again.items()) == [("level2/1_a", 1.0), ("level2/2_b", 2.0), ("level2/3_d", 2.0), ("level2/10_c", 1.0)]
    assert found("level2/2_b", seconds=3.0, threads=1) == {"level2/2_b": 3.0}


@pytest.mark.slow
def test_contenders_are_compared_and_timed_in_processes_of_their_own(tmp_path: Path) -> None:
    folder = checkout(tmp_path, _1_a=PLAIN, _2_b=PLAIN.replace("x * 2", "x[x.shape[0]]"))
    good, bad = measured(problems(folder, [1], []), threads=1, seeds=2, rounds=1, contenders=("eager", "ours"))
    assert not good.wrong
    assert good.ratio is not None
    assert good.error < 1e-6
    assert "ended" in bad.wrong or "does not take" in bad.wrong


RECURRENT = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [one.item() for one in torch.linspace(0, 1, 3)]
        self.layer = torch.nn.LSTM(8, 4, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.rand(5, 7, 8)]

def get_init_inputs():
    return []
"""


def test_recurrent_layers_cost_what_their_products_cost(tmp_path: Path) -> None:
    (path,) = problems(checkout(tmp_path, _1_a=RECURRENT), [1], [])
    found = cost_of(Problem(path, {}))
    # Two directions of 4 gates each: 4 * 4 * 8 weights for the sequence, which the layers give too, and 4 * 4 * 4.
    weights = 2 * 2 * (16 * 8 + 16 * 4)
    elements = weights + 2 * 2 * 32 + 5 * 7 * 8 * 2 + 2 * (4 * 5 * 4)
    assert found == Cost(elements, 5 * 7 * weights)


def test_numbers_of_lists_are_sizes_too(tmp_path: Path) -> None:
    text = SCALED.replace("shape = (512, 1024)", "shape = [512, 1024]\nrepeated = [64] * 3")
    problem = scaled(problems(checkout(tmp_path, _1_a=text), [1], [])[0], Limits(elements=1 << 20))
    assert problem.sizes["shape.1"] < 1024
    assert Problem(problem.path, {**problem.sizes, "repeated.0": 5}).module()["repeated"] == [5, 5, 5]


def test_sizes_take_the_place_of_those_in_the_file(tmp_path: Path) -> None:
    (path,) = problems(checkout(tmp_path, _1_a=SCALED), [1], [])
    found = Problem(path, {"batch_size": 2, "features": 16, "shape.0": 3, "shape.1": 5}).module()
    assert found["get_inputs"]()[0].shape == (2, 16, 3, 5)


def test_timed_results_may_be_as_far_off_as_those_of_eager_pytorch() -> None:
    meant = [torch.tensor([1.0, -1.0], dtype=torch.float64)]
    eager, ours, far = ([torch.tensor([1.0, -1.0 + off])] for off in (3e-3, -3e-3, 3e-2))
    require_close(ours, eager, lambda: meant)
    require_close(eager, eager, lambda: pytest.fail("nothing is computed again where results agree"))
    with pytest.raises(WrongError, match="a timed call has another result than eager PyTorch"):
        require_close(far, eager, lambda: meant)
