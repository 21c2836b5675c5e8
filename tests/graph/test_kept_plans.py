"""Plans in the cache: a later process runs a model without making a graph of it, and gets the same bits."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tc.cache.content.ship import ship
from tests.graph.kept_models import Process, calls, process, write_models
from tests.programs import run

HOSTED = "hosted"
KEPT = [name for name in calls() if name != HOSTED]


class Prepared:
    """Models in a folder, a cache with their plans, and what a process found that had none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache.db"
        write_models(folder)
        self.first = process(folder, self.cache, list(calls()))

    def copy(self, to: Path) -> Path:
        shutil.copy(self.cache, to)
        return to


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("models"))


def require_same(one: Process, other: Process) -> None:
    for name, result in one.results.items():
        np.testing.assert_array_equal(result, other.results[name], err_msg=name)


def test_the_next_process_makes_no_graph_and_no_kernel(prepared: Prepared) -> None:
    found = process(prepared.folder, prepared.cache, KEPT)
    assert (found.made, found.compiled, found.heavy) == (dict.fromkeys(KEPT, 0), dict.fromkeys(KEPT, 0), [])
    require_same(found, prepared.first)
    assert all(prepared.first.made[name] for name in KEPT)


def test_a_shipped_cache_is_enough(prepared: Prepared, tmp_path: Path) -> None:
    ship(prepared.cache, tmp_path / "ship.db")
    found = process(prepared.folder, tmp_path / "ship.db", KEPT, mode="strict")
    assert (found.made, found.compiled, found.heavy) == (dict.fromkeys(KEPT, 0), dict.fromkeys(KEPT, 0), [])
    require_same(found, prepared.first)


def test_what_python_computes_between_two_graphs_is_not_kept(prepared: Prepared) -> None:
    found = process(prepared.folder, prepared.cache, [HOSTED])
    assert (found.made, found.compiled) == ({HOSTED: 1}, {HOSTED: 0})  # the second graph is found again
    require_same(found, prepared.first)


def test_other_weights_give_other_results(prepared: Prepared, tmp_path: Path) -> None:
    write_models(tmp_path, seed=1)
    names = ["layer", "folded", "external"]
    expected = process(tmp_path, prepared.copy(tmp_path / "c.db"), names, mode="off")
    found = process(tmp_path, tmp_path / "c.db", names)
    again = process(tmp_path, tmp_path / "c.db", names)
    assert (found.made, again.made) == (dict.fromkeys(names, 1), dict.fromkeys(names, 0))
    assert again.compiled == dict.fromkeys(names, 0)
    for name in names:
        np.testing.assert_array_equal(found.results[name], expected.results[name])
        np.testing.assert_array_equal(again.results[name], expected.results[name])
        assert not np.array_equal(found.results[name], prepared.first.results[name])


def test_other_settings_have_other_plans(prepared: Prepared, tmp_path: Path) -> None:
    cache = prepared.copy(tmp_path / "c.db")
    some = "[rule for rule in __import__('tc.graph').graph.RULES if rule.name != 'literals']"
    for change in ("lambda m: m.rewrite(())", f"lambda m: m.rewrite({some})"):
        found = process(prepared.folder, cache, ["folded"], change=change)
        again = process(prepared.folder, cache, ["folded"], change=change)
        assert (found.made, again.made, again.compiled) == ({"folded": 1}, {"folded": 0}, {"folded": 0})
        np.testing.assert_allclose(again.results["folded"], prepared.first.results["folded"], rtol=1e-4, atol=1e-4)
    # A rule of one's own may do anything under the name of another one.
    own = "lambda m: m.rewrite([__import__('dataclasses').replace(__import__('tc.graph').graph.RULES[0])])"
    assert [process(prepared.folder, cache, ["layer"], change=own).made["layer"] for _ in range(2)] == [1, 1]


def test_without_its_kernels_a_plan_is_prepared_anew(prepared: Prepared, tmp_path: Path) -> None:
    cache = prepared.copy(tmp_path / "c.db")
    with closing(sqlite3.connect(cache, isolation_level=None)) as connection:
        connection.execute("DELETE FROM variants")
    found = process(prepared.folder, cache, ["layer"])
    assert (found.made, found.compiled) == ({"layer": 1}, {"layer": 1})
    again = process(prepared.folder, cache, ["layer"])
    assert (again.made, again.compiled) == ({"layer": 0}, {"layer": 0})
    require_same(again, prepared.first)


def test_without_its_constants_a_plan_is_prepared_anew(prepared: Prepared, tmp_path: Path) -> None:
    cache = prepared.copy(tmp_path / "c.db")
    with closing(sqlite3.connect(cache, isolation_level=None)) as connection:
        assert connection.execute("SELECT count(*) FROM constants").fetchone()[0] > 0
        connection.execute("DELETE FROM constants")
    found = process(prepared.folder, cache, ["folded"])
    assert (found.made, found.compiled) == ({"folded": 1}, {"folded": 0})
    require_same(found, prepared.first)


def test_weights_of_the_model_are_not_stored(prepared: Prepared) -> None:
    """What was computed of them is, and small ones are."""
    with closing(sqlite3.connect(prepared.cache)) as connection:
        titles = dict(connection.execute("SELECT title, constants FROM plans").fetchall())
    stored = {title.partition("(")[0]: len(json.loads(constants)) for title, constants in titles.items()}
    assert (stored["layer"], stored["external"], stored["folded"]) == (0, 0, 1)


TUNE = """
import tc.graph
tc.graph.load(PATH).tune((3, 70), budget="2 trials", cache=CACHE, seed=0, jobs=1, progress=False)
"""


@pytest.mark.slow
def test_a_tuned_model_needs_no_graph(prepared: Prepared, tmp_path: Path) -> None:
    cache = tmp_path / "tuned.db"
    program = TUNE.replace("PATH", repr(str(prepared.folder / "layer.onnx"))).replace("CACHE", repr(str(cache)))
    run(program, environment={"TC_CACHE_MODE": "off"})
    ship(cache, tmp_path / "ship.db")
    for file, mode in ((cache, "store"), (tmp_path / "ship.db", "strict")):
        found = process(prepared.folder, file, ["layer"], mode=mode)
        assert (found.made, found.compiled) == ({"layer": 0}, {"layer": 0})
        np.testing.assert_allclose(found.results["layer"], prepared.first.results["layer"], rtol=1e-5, atol=1e-5)


DAMAGE = """
import json, random, sys, warnings
from dataclasses import replace
import numpy as np
import tc, tc.graph
from tc.base.environment import environment
from tc.base.errors import CacheError, CacheWarning
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tests.graph.kept_models import calls

def changed(data, random):
    "The same JSON with one part of it replaced."
    inner = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
    if not inner or random.random() < 0.15:
        return random.choice([None, -1, 10**9, "x", [], {}, [[1]], 0.5, True])
    at = random.randrange(len(inner))
    if isinstance(data, dict):
        return {**data, list(data)[at]: changed(inner[at], random)}
    return [*data[:at], changed(data[at], random), *data[at + 1:]]

cache, folder, count = ARGUMENTS
file, inputs = calls()["folded"]
store = Store.open(cache)
with store.transaction() as connection:
    names = [row[0] for row in connection.exec_driver_sql("SELECT identity FROM plans WHERE title LIKE 'folded%'")]
reader = Reader.open(cache)
plan = reader.plan(names[0])
(interface,) = reader.interfaces(plan.model, plan.generator)
outcomes = {"error": 0, "result": 0}
for seed in range(count):
    steps = changed(json.loads(plan.steps), random.Random(seed))
    store.add_plan(interface, [], replace(plan, steps=json.dumps(steps)))
    try:
        tc.graph.load(f"{folder}/{file}").run(["y"], inputs)
        outcomes["result"] += 1
    except CacheError as error:
        assert "holds what tc did not make: " in str(error), error
        assert any(part in str(error) for part in ("a plan of folded(x(1, 64, 3, 5)) (", "the kernel ")), error
        outcomes["error"] += 1
    except (tc.ArgumentError, ValueError, KeyError, IndexError, TypeError):
        # A plan that is whole, and wrong: the cache is code, and whoever writes it decides what runs.
        outcomes["result"] += 1
print(json.dumps(outcomes))
"""


def test_steps_that_nothing_here_has_made(prepared: Prepared, tmp_path: Path) -> None:
    cache = prepared.copy(tmp_path / "c.db")
    program = DAMAGE.replace("ARGUMENTS", f"{str(cache)!r}, {str(prepared.folder)!r}, 60")
    outcomes = json.loads(run(program, environment={"TC_CACHE": str(cache), "TC_CACHE_MODE": "store"}))
    assert outcomes["error"] > 20
