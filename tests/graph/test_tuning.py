"""Models are tuned: equal kernels once, first all that they may have, then those by which the whole gains most."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from tc.api.tuning import subject_for
from tc.artifact.definition import Parsed
from tc.artifact.packing import options_text
from tc.base.environment import environment
from tc.base.errors import GraphError, TuningError
from tc.base.types import ScalarType
from tc.cache.content.configured import Configuration, Mode
from tc.cache.content.store import Store
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.memory.plan import MemoryPlan
from tc.graph.model import Model
from tc.graph.operators.joining import concatenated
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.run.kernels import wanted_in
from tc.graph.run.recorded import place_of
from tc.graph.settings import Settings
from tc.graph.tuning.model_search import ModelSearch, search
from tc.graph.tuning.pool import KernelPool
from tc.graph.tuning.report import ModelTuning, TunedKernel
from tc.store.cached import KernelCache
from tc.store.wanted import Wanted
from tc.targets.options import CpuOptions
from tc.targets.target import parse_target
from tc.tuner.session.confirm import Contender
from tc.tuner.session.in_turns import Turns
from tc.tuner.session.inject import Wish, inject
from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.session.searches import Searches
from tc.tuner.session.settings import TuningResult
from tc.tuner.session.subject import Subject
from tc.tuner.trial.budget import Allowance, Budget
from tests.graph.cut_steps import CUT, asked, steps
from tests.programs import run

F = ScalarType.FLOAT32
CPU = parse_target("cpu")
HERE = place_of(CPU)
PLAIN = Settings(rules=())


@dataclass
class Machine:
    """Kernels by name take so many seconds with the default options, and when they are tuned; None: they fail.

    ``noise``: what seems to be so until it is measured in turns.
    """

    default: Mapping[str, float | None]
    tuned: Mapping[str, float] = field(default_factory=dict)
    known: dict[str, float] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    stepped: list[str] = field(default_factory=list)
    noise: dict[str, float] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)

    def times(self, several: Sequence[Wanted]) -> list[Mapping[tuple[str, int], tuple[float, float]]]:
        """As ``KernelCache`` says it."""
        names = [wanted.definition.interface.name for wanted in several]
        return [{HERE: (self.known[name], self.default[name] or 0.0)} if name in self.known else {} for name in names]

    @contextmanager
    def begin(self, _name: str, subject: Subject) -> Iterator[Tuning]:
        yield cast("Tuning", Scripted(self, subject.definition.interface.name))


@dataclass
class Scripted:
    """A search that is over after one generation."""

    machine: Machine
    name: str
    best: float | None = None
    bound: float | None = None
    finishing: float = 0.0
    rounds: int = 3

    def begin(self) -> None:
        self.machine.begun.append(self.name)
        self.best = self.machine.noise.get(self.name, self.machine.default[self.name])

    def step(self, _allowance: Allowance) -> str | None:
        self.machine.stepped.append(self.name)
        self.best = self.machine.tuned.get(self.name, self.best)
        return "there is nothing else to try"

    def finish(self, stopped: str, _deadline: object) -> TuningResult:
        self.settle(stopped)
        return cast("TuningResult", Result(self.machine.default[self.name] or 0.0, self.best or 0.0))

    def settle(self, _stopped: str) -> None:
        if self.best is None:
            raise TuningError(f"{self.name}: nothing can be tuned")
        self._keep()

    def keep_best(self) -> None:
        self._keep()

    def stop_idle(self) -> None:
        pass

    def turns(self) -> Turns:
        return cast("Turns", self)

    def take(self) -> None:
        self.machine.turns.append(self.name)

    def keep(self) -> None:
        if self.name in self.machine.noise:
            self.best = self.machine.default[self.name]
            self._keep()

    def _keep(self) -> None:
        if self.best is not None:
            self.machine.known[self.name] = self.best


class Result(TuningResult):  # of what a search comes to, that which models look at
    """See there."""

    def __init__(self, default: float, seconds: float) -> None:
        for name, value in (("default", default), ("seconds", seconds), ("trials", (None, None))):
            object.__setattr__(self, name, value)


def tuned(
    machine: Machine, *graphs: Graph, settings: Settings = PLAIN, stop: Callable[[], bool] = lambda: False
) -> list[ModelTuning]:
    """What comes of models on such a machine."""
    with ExitStack() as stack:
        searches = Searches(stack, stop)
        pool = KernelPool(searches, machine.begin, CPU, cast("KernelCache", machine), stop)
        models = [ModelSearch(graph.name, graph, settings, pool) for graph in graphs]
        search(models, pool, Budget(seconds=60.0), lambda: None)
        return [model.report()[0] for model in models]


def layers(count: int = 1, name: str = "layers") -> Graph:
    builder = Builder(name)
    value = builder.input("x", F, (8, 8))
    for number in range(count):
        value = product(builder, value, builder.input(f"w{number}", F, (8, 8)))
        value = pointwise(builder, "relu", "max({0}, 0)", [value])
    return builder.finish([value])


JOINED = {"matmul_relu": 8e-6, "matmul": 7e-6, "relu": 3e-6}
APART = {"matmul_relu": 12e-6, "matmul": 7e-6, "relu": 3e-6}


def test_equal_kernels_are_searched_for_once_and_counted() -> None:
    machine = Machine(JOINED, {"matmul_relu": 4e-6})
    (found,) = tuned(machine, layers(3))
    assert sorted(machine.begun) == ["matmul", "matmul_relu", "relu"]
    assert machine.stepped == ["matmul_relu"]
    (kernel,) = found.kernels
    assert kernel == TunedKernel("matmul_relu(8x8, 8x8)", 3, 8e-6, 4e-6, trials=2)
    assert [found.default, found.seconds] == pytest.approx([24e-6, 12e-6])
    assert found.speedup == 2.0


def test_models_share_their_kernels() -> None:
    machine = Machine(JOINED, {"matmul_relu": 4e-6})
    first, second = tuned(machine, layers(3, "three"), layers(1, "one"))
    assert sorted(machine.begun) == ["matmul", "matmul_relu", "relu"]
    assert [first.name, second.name] == ["three", "one"]
    assert [first.seconds, second.seconds] == pytest.approx([12e-6, 4e-6])


def test_what_is_quicker_apart_is_tuned_apart_and_so_is_what_the_rule_joins() -> None:
    machine = Machine(APART, {"matmul": 5e-6, "relu": 2e-6})
    (found,) = tuned(machine, layers())
    assert sorted(machine.stepped) == ["matmul", "matmul_relu", "relu"]
    assert [kernel.name for kernel in found.kernels] == ["matmul(8x8, 8x8)", "relu(8x8)"]
    assert found.default == pytest.approx(12e-6), "by rule"
    assert found.seconds == pytest.approx(7e-6)
    assert found.cuts == {"matmul_Y -> relu_Y": "7 us measured, without it 12 us"}


def test_what_a_busy_machine_makes_of_a_kernel_is_measured_again_in_turns() -> None:
    machine = Machine(JOINED, noise={"matmul_relu": 40e-6})
    (found,) = tuned(machine, layers())
    assert machine.turns == ["matmul_relu", "matmul", "relu"] * 3
    assert found.cuts == {}
    assert found.seconds == pytest.approx(8e-6)


def test_it_is_decided_again_when_all_is_tuned() -> None:
    (found,) = tuned(Machine(APART, {"matmul_relu": 5e-6}), layers())
    assert [(kernel.name, kernel.seconds) for kernel in found.kernels] == [("matmul_relu(8x8, 8x8)", 5e-6)]
    assert found.cuts == {}


def test_the_plan_that_comes_of_it_is_kept() -> None:
    machine = Machine(APART)
    kept: list[tuple[KernelCache, list[str]]] = []

    def keep(kernels: KernelCache, plan: MemoryPlan) -> None:
        kept.append((kernels, [node.program.name for node in plan.graph.nodes if isinstance(node, Call)]))

    with ExitStack() as stack:
        cache = cast("KernelCache", machine)
        pool = KernelPool(Searches(stack, lambda: False), machine.begin, CPU, cache, lambda: False)
        search([ModelSearch("layers", layers(), PLAIN, pool, keep)], pool, Budget(seconds=60.0), lambda: None)
    assert kept == [(cache, ["matmul", "relu"])]


def test_what_takes_little_time_is_not_divided_otherwise() -> None:
    builder = Builder("uneven")
    x, w = builder.input("x", F, (8, 8)), builder.input("w", F, (8, 8))
    large = product(builder, x, w)
    (other,) = builder.call("def long(float(M,N) A) -> (B) { B(i,j) = exp(A(j,i)) }", large)
    small = pointwise(builder, "relu", "max({0}, 0)", [product(builder, other, w)])
    machine = Machine({"matmul": 1.0, "long": 1.0, "matmul_relu": 1e-3, "relu": 1e-3})
    tuned(machine, builder.finish([small]))
    assert "relu" not in machine.begun


def test_what_is_stopped_tells_what_it_has() -> None:
    machine = Machine({**JOINED, "long": 1e-3})
    builder = Builder("two")
    (turned,) = builder.call("def long(float(M,N) A) -> (B) { B(i,j) = exp(A(j,i)) }", builder.input("x", F, (8, 8)))
    graph = builder.finish([product(builder, turned, builder.input("w", F, (8, 8)))])
    (found,) = tuned(machine, graph, stop=lambda: bool(machine.begun))
    assert machine.begun == ["long"]
    assert [str(kernel) for kernel in found.kernels] == [
        "1 x long(8x8): 1 ms to 1 ms, 1.00x, 1 trial",
        "1 x matmul(8x8, 8x8): not measured",
    ]


def test_kernels_that_fail_are_told() -> None:
    (found,) = tuned(Machine({"matmul_relu": None, "matmul": 7e-6, "relu": 3e-6}), layers(2))
    (kernel,) = found.failed
    assert str(kernel) == "2 x matmul_relu(8x8, 8x8): failed: matmul_relu: nothing can be tuned"
    assert found.seconds == 0.0
    assert found.speedup == 1.0


def test_cuts_that_are_given_stay() -> None:
    settings = Settings(rules=(), cuts=("matmul_Y",))
    machine = Machine(JOINED)
    (found,) = tuned(machine, layers(), settings=settings)
    assert sorted(machine.begun) == ["matmul", "relu"]
    assert found.cuts == {"matmul_Y -> relu_Y": "by hand"}


def test_what_is_said() -> None:
    kernels = (TunedKernel("f(8)", 2, 4e-6, 2e-6, 7), TunedKernel("g(scalar)", 1, None, None))
    found = ModelTuning("model.onnx", kernels, 9e-6, 6e-6, {"a -> b": "6 us measured, without it 9 us"})
    assert str(found).splitlines() == [
        "model.onnx: 3 kernels, 2 different: 9 us to 6 us, 1.50x the default",
        "    2 x f(8): 4 us to 2 us, 2.00x, 7 trials",
        "    1 x g(scalar): not measured",
        "    cut a -> b: 6 us measured, without it 9 us",
    ]


def test_an_interrupted_search_keeps_what_it_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = []

    def interrupted(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tc.graph.tuning.tune.search", interrupted)
    monkeypatch.setattr(Searches, "keep_best", lambda _self: kept.append(True))
    with pytest.raises(KeyboardInterrupt):
        Model.of(layers()).tune(cache=tmp_path / "tuned.db", progress=False)
    assert kept == [True]


def test_a_model_with_open_sizes_needs_them(tmp_path: Path) -> None:
    from tc.graph.ir.sizes import open_size

    builder = Builder("open")
    end = pointwise(builder, "relu", "max({0}, 0)", [builder.input("x", F, (open_size("N"),))])
    with pytest.raises(GraphError, match=re.escape("`x` has the open shape (N); give shapes of the inputs")):
        Model.of(builder.finish([end])).tune(cache=tmp_path / "tuned.db", progress=False)


# --- real kernels ------------------------------------------------------------------------------------------------


STRICT = """
from tc.graph.model import Model
from tests.graph.cut_steps import CUT, asked, steps
print(*sorted(asked(Model.of(steps(), CUT))), sep="\\n")
"""


def stored(path: Path, model: Model) -> set[str]:
    """The same of the winners in a cache."""
    cache = KernelCache(Configuration(str(path), Mode.STORE, None, own=False), environment())
    found = set()
    for wanted in wanted_in(model._prepared(model.graph()).memory):
        definition = Parsed(wanted.comprehension.program)
        executable = cache.find(Wanted(definition, wanted.signature, CPU, None))
        assert executable is not None
        found.add(f"{wanted.signature.aliases} {options_text(executable.asked)}")
    return found


def test_models_run_what_a_cache_has_of_their_very_kernels(tmp_path: Path) -> None:
    """Also of those that write in place, whose kernels are others."""
    path, model = tmp_path / "tuned.db", Model.of(steps(), CUT)
    store, threads = Store.open(path), CpuOptions(threads=1)
    for wanted in wanted_in(model._prepared(model.graph()).memory):
        definition, own = Parsed(wanted.comprehension.program), wanted.comprehension.kernels
        records = SearchRecords(
            store,
            Wanted(definition, wanted.signature, CPU, None),
            {definition.interface.name: definition},
            environment(),
        )
        executable = own.compile(wanted.signature, CPU, threads).executable
        records.keep(executable, Contender((0.25,), ""), Contender((0.5,), ""), run="")
    cache = KernelCache(Configuration(str(path), Mode.STORE, None, own=False), environment())
    with ExitStack() as stack:
        pool = KernelPool(Searches(stack, lambda: False), Machine({}).begin, CPU, cache, lambda: False)
        search = ModelSearch("steps", model.graph(), CUT, pool)
        search.refresh()
        assert search.report()[0].seconds == 0.75
    assert asked(model) == {f"{aliases} {options_text(threads)}" for aliases in ((), (("Y", "A"),))}
    assert asked(model) == stored(path, model)


@pytest.mark.slow
def test_models_run_the_winners_of_their_very_kernels(brief_searches: None, tmp_path: Path) -> None:
    path, model = tmp_path / "tuned.db", Model.of(steps(), CUT)
    found = model.tune(budget="2 trials", cache=path, seed=0, jobs=1, progress=False)
    assert [(kernel.count, kernel.failed, kernel.trials) for kernel in found.kernels] == [(1, "", 2)] * 3
    assert {kernel.name for kernel in found.kernels} == {"half(7x9)", "relu(7x9, in place)", "matmul(7x9, 9x5)"}
    assert asked(model) == stored(path, model)
    (in_place,) = [wanted for wanted in wanted_in(model._prepared(model.graph()).memory) if wanted.in_place]
    definition = Parsed(in_place.comprehension.program)
    subject = subject_for(definition, {definition.interface.name: definition}, in_place.signature)
    inject(Wish(subject, CPU, CpuOptions(threads=1)), Store.open(path), environment())
    lines = run(STRICT, environment={"TC_CACHE": str(path), "TC_CACHE_MODE": "strict"}).splitlines()
    assert f"{in_place.signature.aliases} {options_text(CpuOptions(threads=1))}" in lines
    assert set(lines) == stored(path, model)


@pytest.mark.slow
def test_kernels_that_write_to_parts_are_tuned(brief_searches: None, tmp_path: Path) -> None:
    builder = Builder("parts")
    x = builder.input("x", ScalarType.FLOAT32, (2, 3, 40))
    text = "def sums(float(N,C,H) X) -> (Y) { Y(n,c,h) +=! X(n,c,h+i) where i in 0:2 }"
    parts = [builder.call(text.replace("0:2", f"0:{window}"), x)[0] for window in (2, 2)]
    path, model = tmp_path / "tuned.db", Model.of(builder.finish([concatenated(builder, parts, 1)]), Settings(rules=()))
    found = model.tune(budget="2 trials", cache=path, seed=0, jobs=1, progress=False)
    assert [(kernel.name, kernel.count, kernel.failed) for kernel in found.kernels] == [
        ("sums(2x3x40, with strides)", 2, "")
    ]
    assert asked(model) == stored(path, model)


@pytest.mark.slow
def test_how_a_model_is_divided_is_decided_and_the_search_goes_on(brief_searches: None, tmp_path: Path) -> None:
    path, model = tmp_path / "tuned.db", Model.of(layers(2), PLAIN)
    found = model.tune(budget="2 trials", cache=path, seed=0, jobs=1, progress=False)
    again = model.tune(budget="3 trials", cache=path, seed=0, jobs=1, progress=False)
    assert not found.failed
    assert not again.failed
    assert asked(model) == stored(path, model)
    said = model.explain()
    assert "predicted" not in said or "measured" not in said
