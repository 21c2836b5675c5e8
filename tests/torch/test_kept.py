"""Plans of graphs that PyTorch captures: a later process takes them from the cache, where they are for the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import fx

from tc.torch.fx.canonical import canonical
from tests.torch.kept_functions import VARYING, Process, calls, process

NOTHING = {"tried": 0, "planned": 0, "compiled": 0}


def require_results(found: Process, variant: int) -> None:
    x = torch.linspace(-2, 2, 12).reshape(6, 2)
    meant = {
        "partly": torch.special.airy_ai(x * 2) + 1,
        "constant": x + torch.tensor([float(variant), 2.0]),
        "operator": variant * x[:, 0] - 1,
    }
    for name, value in meant.items():
        torch.testing.assert_close(torch.tensor(found.results[name][0]), value)


def test_the_next_process_plans_and_compiles_nothing(tmp_path: Path) -> None:
    first, second = (process(tmp_path / "cache.db", variant) for variant in (2, 3))
    assert all(counts["tried"] and counts["planned"] for counts in first.made.values())
    same = [name for name in calls(0) if name not in VARYING]
    assert {name: second.made[name] for name in same} == dict.fromkeys(same, NOTHING)
    assert {name: second.results[name] for name in same} == {name: first.results[name] for name in same}
    assert second.heavy == []
    # Other contents and other meanings of one name are other graphs.
    assert (second.made["constant"]["planned"], second.made["operator"]["planned"]) == (1, 1)
    require_results(first, 2)
    require_results(second, 3)


def graph(
    *arguments: object,
    target: object = torch.ops.aten.add.Tensor,
    shape: tuple[int, ...] = (2, 3),
    dtype: torch.dtype = torch.float32,
    held: torch.Tensor | None = None,
    line: int = 1,
) -> fx.GraphModule:
    """A call on a placeholder, a tensor that the module holds, if there is one, and arguments."""
    module, made = torch.nn.Module(), fx.Graph()
    x = made.placeholder("x")
    x.meta["val"] = torch.empty(shape, dtype=dtype)
    if held is not None:
        module.register_buffer("held", held)
    rest = arguments if held is None else (made.get_attr("held"), *arguments)
    y = made.call_function(target, (x, *rest))  # type: ignore[arg-type]
    y.meta |= {"val": torch.empty(shape, dtype=dtype), "stack_trace": f'File "model.py", line {line}'}
    made.output((y,))
    return fx.GraphModule(module, made)


def text_of(module: fx.GraphModule, meaning: str = "") -> str | None:
    return canonical(module, lambda _: meaning)


def test_texts_differ_where_graphs_do() -> None:
    ones = torch.ones(3)
    graphs = [
        graph(1),
        graph(1.0),
        graph(True),
        graph(-0.0),
        graph([1]),
        graph((1,)),
        graph("1"),
        graph(1, shape=(3, 2)),
        graph(1, dtype=torch.float64),
        graph(1, target=torch.ops.aten.mul.Tensor),
        graph(held=ones),
        graph(held=ones * 2),
        graph(held=ones.double()),
        graph(held=ones.reshape(3, 1)),
        graph(torch.float32),
        graph(torch.device("cpu")),
    ]
    texts = [text_of(one) for one in graphs]
    assert None not in texts
    assert len(set(texts)) == len(texts)
    assert text_of(graph(1), "another") != text_of(graph(1))
    assert text_of(graph(1, line=2)) == text_of(graph(1))
    assert text_of(graph(held=torch.ones(6)[::2])) == text_of(graph(held=ones))


@pytest.mark.parametrize(
    "doubtful",
    [
        graph(1j),
        graph(target=lambda x: x),
        graph(target=test_texts_differ_where_graphs_do),
        graph(held=torch.ones(2, dtype=torch.complex64)),
        graph(held=torch.ones(2, device="meta")),
        graph(held=torch.ones(2).to_sparse()),
    ],
)
def test_what_has_no_text_is_not_kept(doubtful: fx.GraphModule) -> None:
    assert text_of(doubtful) is None
