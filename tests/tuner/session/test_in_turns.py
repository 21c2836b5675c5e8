"""What kernels take beside each other is stored, and counts from then on."""

from __future__ import annotations

from pathlib import Path

from tc.artifact.packing import unpack
from tc.targets.options import CpuOptions
from tc.tuner.session.confirm import Contender
from tc.tuner.session.in_turns import measure_in_turns
from tests.tuner import trial_support as trial
from tests.tuner.session.searches import begun, records


def test_the_winner_and_the_default_are_measured_anew(tmp_path: Path) -> None:
    path = tmp_path / "kernels.db"
    known = records(path)
    with trial.workers() as workers:
        search = begun(workers, path)
        assert search.turns().rounds == 11
        measure_in_turns([search.turns()], lambda: False)
        assert known.incumbent() is None, "nothing was stored"
        search.begin()
        search.settle("it had no time")
        (built,) = workers.build([CpuOptions(threads=1).to_json()], 60.0)
        assert isinstance(built, bytes)
        known.keep(unpack(built), Contender((1e-9,), ""), Contender((1e-8,), ""), run="")
        measure_in_turns([search.turns()], lambda: False)
    place = known.wanted.machine, known.wanted.threads
    seconds, default = known.store.reader.times({known.ingredients.key: ""})[known.ingredients.key][place]
    assert 1e-8 < seconds < 1.0
    assert 1e-8 < default < 1.0


def test_what_is_stopped_measures_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kernels.db"
    with trial.workers() as workers:
        search = begun(workers, path)
        search.begin()
        search.settle("it had no time")
        before = records(path).store.reader.manifest()
        measure_in_turns([search.turns()], lambda: True)
    assert records(path).store.reader.manifest() == before
