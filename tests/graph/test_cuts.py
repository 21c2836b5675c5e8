"""Where kernels are divided: by measured seconds where all alternatives have them, else by the model, or by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tc.base.errors import GraphError, OptionsError
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import Shape
from tc.graph.memory.plan import planned
from tc.graph.model import Model
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.partition.compose import composed
from tc.graph.partition.costs import NO_RECORD, Cost, Costs, Place, Record
from tc.graph.partition.cuts import cut_name, named_cuts
from tc.graph.partition.decide import MEASURED_GAIN, decided
from tc.graph.partition.divisions import Divisions
from tc.graph.partition.edges import edges_of
from tc.graph.partition.partition import partition_of
from tc.graph.partition.rates import Rates, rates_of
from tc.graph.preparation import divided, optimized, prepared
from tc.graph.run.arrays import numbers
from tc.graph.run.evaluate import evaluate
from tc.graph.settings import Settings
from tc.targets.target import CpuTarget, OpenClTarget, parse_target
from tests.fuzz.graph_programs import drawn

F, D = ScalarType.FLOAT32, ScalarType.FLOAT64
RATES = Rates(operations=1e11, bytes=2e10, call=3e-6)
HERE, ELSEWHERE, SERIAL = ("here", 2), ("another", 8), ("here", 1)


@dataclass
class Fake:
    """Seconds by the names of programs, and by place."""

    times: Mapping[str, Mapping[Place, float]]
    here: Place = HERE
    asked: list[str] = field(default_factory=list)

    def may_know(self, _shapes: Sequence[Shape]) -> bool:
        return True

    def seconds(self, _graph: Graph, calls: Sequence[Call]) -> list[Mapping[Place, float]]:
        self.asked += [call.program.name for call in calls]
        return [self.of(call) for call in calls]

    def of(self, call: Call) -> Mapping[Place, float]:
        return self.times.get(call.program.name, {})


def here(**times: float) -> Fake:
    return Fake({name: {HERE: seconds} for name, seconds in times.items()})


def layer() -> Graph:
    builder = Builder("layer")
    made = product(builder, builder.input("x", F, (8, 16)), builder.input("w", F, (16, 4)))
    shifted = pointwise(builder, "add", "{0} + {1}", [made, builder.input("b", F, (4,))])
    return builder.finish([pointwise(builder, "relu", "max({0}, 0)", [shifted])])


def kernels(graph: Graph, record: Record = NO_RECORD, rates: Rates = RATES) -> list[str]:
    partition = decided(Costs(graph, rates, record)).partition
    return [node.program.name for node in composed(graph, partition).nodes if isinstance(node, Call)]


def test_without_measurements_all_is_joined_that_may_be() -> None:
    assert kernels(layer()) == ["matmul_add_relu"]
    for seed in range(60):
        graph = drawn(seed).graph
        if all(value.type is F for value in graph.values.values()):
            decision = decided(Costs(graph, RATES))
            assert (decision.partition, decision.choices) == (partition_of(graph), ()), seed


def test_what_was_measured_to_be_quicker_apart_is_apart() -> None:
    record = here(matmul_add_relu=9e-6, matmul=5e-6, add_relu=3e-6)
    assert kernels(layer(), record) == ["matmul", "add_relu"]
    assert kernels(layer(), here(matmul_add_relu=8e-6, matmul=5e-6, add_relu=3e-6)) == ["matmul_add_relu"]


def test_a_gain_within_what_measurements_vary_by_changes_nothing() -> None:
    joined = (1 + 0.8 * MEASURED_GAIN) * 8e-6
    assert kernels(layer(), here(matmul_add_relu=joined, matmul=5e-6, add_relu=3e-6)) == ["matmul_add_relu"]


def test_where_one_alternative_was_not_measured_the_model_decides() -> None:
    assert kernels(layer(), here(matmul_add_relu=9e-3, matmul=5e-6)) == ["matmul_add_relu"]
    assert kernels(layer(), here(matmul=5e-6, add_relu=3e-6)) == ["matmul_add_relu"]


def test_of_several_cuts_the_best_is_chosen_and_goes_on_from_there() -> None:
    times = {"matmul_add_relu": 9e-6, "matmul": 3e-6, "add_relu": 4e-6, "matmul_add": 6e-6, "relu": 1e-6, "add": 1e-6}
    assert kernels(layer(), here(**times)) == ["matmul", "add", "relu"]
    assert kernels(layer(), here(**{**times, "add": 4e-6})) == ["matmul", "add_relu"]


def test_seconds_of_different_places_are_not_compared() -> None:
    mixed = Fake({"matmul_add_relu": {HERE: 9e-6}, "matmul": {ELSEWHERE: 1e-6}, "add_relu": {ELSEWHERE: 1e-6}})
    assert kernels(layer(), mixed) == ["matmul_add_relu"]


def test_what_was_measured_elsewhere_counts_where_nothing_was_here() -> None:
    slow, quick = {HERE: 9e-6, ELSEWHERE: 1e-6}, {HERE: 1e-6, ELSEWHERE: 9e-6}
    times = {"matmul_add_relu": slow, "matmul": quick, "add_relu": quick}
    assert kernels(layer(), Fake(times)) == ["matmul", "add_relu"]
    assert kernels(layer(), Fake(times, ("a third", 2))) == ["matmul", "add_relu"], "as many threads"
    assert kernels(layer(), Fake(times, ("a third", 3))) == ["matmul_add_relu"], "the first of both, by name"
    assert kernels(layer(), Fake(times, SERIAL)) == ["matmul", "add_relu"], "the machine goes before the threads"


def test_each_kernel_is_looked_up_once() -> None:
    record = here(matmul_add_relu=9e-6, matmul=5e-6, add_relu=3e-6)
    kernels(layer(), record)
    assert len(record.asked) == len(set(record.asked))


def mixed_sum() -> Graph:
    """The rule joins the sum to the first product; it saves twice the bytes to join it to the second."""
    builder = Builder("sum")
    one = product(builder, builder.input("x", F, (500, 1)), builder.input("w", F, (1, 400)))
    two = product(builder, builder.input("u", D, (500, 1)), builder.input("v", D, (1, 400)))
    (total,) = builder.call("def plus(float(N,C) A, double(N,C) B) -> (Y) { Y(i,j) = A(i,j) + B(i,j) }", one, two)
    return builder.finish([total])


def test_the_model_joins_where_more_bytes_are_saved() -> None:
    graph = mixed_sum()
    (choice,) = decided(Costs(graph, RATES)).choices
    assert [edge.value for edge in choice.cut] == [graph.nodes[0].results[0]]
    assert not choice.after.measured
    assert kernels(graph) == ["matmul", "matmul_plus"]
    settings = Settings(target="cpu", rules=())
    assert prepared(graph, settings).memory.peak < prepared(graph, replace(settings, cuts=())).memory.peak


def test_measurements_go_before_the_model() -> None:
    record = Fake({"matmul_plus": {HERE: 5e-6}, "matmul": {HERE: 5e-6}, "plus": {HERE: 1e-3}})
    assert decided(Costs(mixed_sum(), RATES, record)).choices == (), "both ways are measured to be alike"


def test_the_search_ends_where_measurements_contradict_each_other() -> None:
    """Kernels of one name stand for different groups, so that every change seems to gain."""

    class Restless(Fake):
        def of(self, call: Call) -> Mapping[Place, float]:
            self.asked.append(call.program.name)
            return {HERE: 1.0 / len(self.asked)}

    graph = composed(layer(), partition_of(layer(), frozenset(edges_of(layer()))))
    assert decided(Costs(graph, RATES, Restless({}))).partition.groups


@pytest.mark.parametrize("seed", range(30))
def test_whatever_was_measured_changes_no_result(seed: int) -> None:
    class Drawn(Fake):
        def of(self, call: Call) -> Mapping[Place, float]:
            return {HERE: random.Random(f"{seed} {call.program.name} {call.results}").random()}

    case = drawn(seed)
    decision = decided(Costs(case.graph, RATES, Drawn({})))
    assert decision.partition == partition_of(case.graph, decision.partition.cuts)
    found = evaluate(composed(case.graph, decision.partition), case.inputs)
    for name, wanted in zip(case.graph.outputs, case.results, strict=True):
        np.testing.assert_array_equal(found[name], wanted)


# --- alternatives ------------------------------------------------------------------------------------------------


def alternatives(graph: Graph, cuts: frozenset[object] = frozenset()) -> set[frozenset[tuple[int, ...]]]:
    chosen = frozenset(edge for edge in edges_of(graph) if edge in cuts)
    divisions = Divisions(graph, edges_of(graph), chosen)
    return {change.new for part in divisions.parts for change in divisions.changes(part)}


def test_alternatives_are_those_of_one_edge() -> None:
    graph = layer()
    assert alternatives(graph) == {frozenset({(0,), (1, 2)}), frozenset({(0, 1), (2,)})}
    first = next(edge for edge in edges_of(graph) if edge.producer == 0)
    assert alternatives(graph, frozenset({first})) == {frozenset({(0, 1, 2)}), frozenset({(1,), (2,)})}


def test_calls_that_several_values_connect_are_cut_apart_together() -> None:
    builder = Builder("twice")
    half = pointwise(builder, "half", "{0} / 2", [builder.input("x", F, (8,))])
    both = [pointwise(builder, name, text, [half]) for name, text in (("up", "{0} + 1"), ("down", "{0} - 1"))]
    graph = builder.finish([pointwise(builder, "product", "{0} * {1}", both)])
    assert frozenset({(0,), (1, 2, 3)}) in alternatives(graph)
    assert frozenset({(0, 1, 2), (3,)}) in alternatives(graph)


def test_what_does_not_touch_is_not_divided_anew() -> None:
    builder = Builder("two")
    halves = [pointwise(builder, "half", "{0} / 2", [builder.input(name, F, (8,))]) for name in ("x", "y")]
    graph = builder.finish([pointwise(builder, "relu", "max({0}, 0)", [half]) for half in halves])
    assert len(Divisions(graph, edges_of(graph)).parts) == 2
    assert alternatives(graph) == {frozenset({(0,), (2,)}), frozenset({(1,), (3,)})}


# --- by hand -----------------------------------------------------------------------------------------------------


def test_cuts_are_given_by_name() -> None:
    graph = layer()
    made, shifted = graph.nodes[0].results[0], graph.nodes[1].results[0]
    (edge,) = named_cuts(graph, [f"{made} -> {shifted}"])
    assert (edge.producer, edge.consumer, cut_name(graph, edge)) == (0, 1, f"{made} -> {shifted}")
    assert named_cuts(graph, [made]) == {edge}
    model = Model.of(graph, Settings(rules=()))
    assert len(planned(composed(graph, partition_of(graph, frozenset({edge})))).graph.nodes) == 2
    said = model.cut(made).explain()
    assert "== kernels: 2 for 3 calls ==" in said
    assert f"== cuts ==\n{made} -> {shifted}: by hand\n" in said
    assert "== cuts ==\nnothing is cut\n" in model.explain()


def test_results_do_not_depend_on_cuts() -> None:
    graph = layer()
    model, numbers_of = Model.of(graph), np.random.default_rng(0)
    shapes = [numbers(graph.values[name].shape, name) for name in graph.inputs]
    arrays = [numbers_of.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    np.testing.assert_array_equal(model.cut(graph.nodes[0].results[0])(*arrays), model(*arrays))


def test_cuts_that_there_are_not() -> None:
    graph = layer()
    with pytest.raises(GraphError, match="`layer` has no calls that share a kernel through `matmul_X`; did you mean `"):
        named_cuts(graph, ["matmul_X"])
    with pytest.raises(GraphError, match=r"through `b`; there are `matmul_Y -> add_Y`, `add_Y -> "):
        named_cuts(graph, ["b"])
    builder = Builder("alone")
    alone = builder.finish([pointwise(builder, "half", "{0} / 2", [builder.input("x", F, (8,))])])
    with pytest.raises(GraphError, match="`alone` has no calls that share a kernel through `x`; there are none"):
        Model.of(alone).cut("x").plan()


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(OptionsError, match=r"cuts are names of values, such as \['r0 -> r1'\], got 'r0'"):
        Settings(cuts="r0")  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match=r"cuts are names of values, such as \['r0 -> r1'\], got \(1,\)"):
        Settings(cuts=(1,))  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match="fuse=False leaves nothing to cut; leave out either"):
        Settings(fuse=False, cuts=("r0",))


# --- what is said ------------------------------------------------------------------------------------------------


def test_kernels_are_explained_with_what_they_cost() -> None:
    from tc.graph.explain import explained

    graph, settings = layer(), Settings(rules=())
    record = here(matmul_add_relu=9e-6, matmul=5e-6, add_relu=3e-6)
    said = explained(divided(graph, optimized(graph, settings), settings, record))
    assert "matmul_Y: matmul, 5 us measured" in said
    assert "in all: 8 us measured of 2 kernels\n" in said
    assert "\nmatmul_Y -> add_Y: 8 us measured, without it 9 us\n" in said
    said = explained(divided(graph, optimized(graph, settings), settings, NO_RECORD))
    assert " predicted\nin all: " in said
    assert str(Cost(0.002, measured=False)) == "2 ms predicted"


# --- the model ---------------------------------------------------------------------------------------------------


def test_predictions_are_the_longer_of_arithmetic_and_traffic() -> None:
    graph = layer()
    costs = Costs(graph, Rates(operations=1.0, bytes=1e30, call=0.0))
    assert costs.of((0,)) == Cost(2 * 8 * 16 * 4, measured=False)
    assert costs.of((0, 1, 2)).seconds == 2 * 8 * 16 * 4 + 2 * 8 * 4
    costs = Costs(graph, Rates(operations=1e30, bytes=4.0, call=100.0))
    assert costs.of((0,)).seconds == 100 + 8 * 16 + 16 * 4 + 8 * 4
    assert costs.of((0, 1, 2)).seconds == 100 + 8 * 16 + 16 * 4 + 4 + 8 * 4


@pytest.mark.parametrize("name", ["cpu:x86-64-v3", "emulator", "cuda:sm_90"])
def test_machines_have_rates(name: str) -> None:
    one, two = (rates_of(parse_target(name), cores) for cores in (1, 2))
    assert 1e9 < one.bytes < 1e13
    assert 1e9 < one.operations < 1e15
    assert (two.operations > one.operations) == name.startswith("cpu")


def test_wider_vectors_do_more() -> None:
    assert rates_of(CpuTarget("x86-64-v4"), 2).operations == 4 * rates_of(CpuTarget("x86-64"), 2).operations
    assert rates_of(OpenClTarget(), 2).operations > rates_of(CpuTarget("x86-64-v4"), 2).operations
