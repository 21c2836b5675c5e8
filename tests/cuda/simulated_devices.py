"""A whole search over two GPUs that are not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tc.commands import cache as cache_command
from tc.commands import tune
from tc.tuner.roofline.roofline import Bandwidth, Roofs
from tc.tuner.session import search_setup
from tc.tuner.trial import workers
from tc.tuner.trial.process import Process
from tests.cuda.simulator import Simulator, simulator

TEXT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
# No call is too quick for them.
ROOFS = Roofs(operations=1e15, bandwidths=(Bandwidth(1 << 20, 1e15, 1e15),), fresh=1e15)

simulator().alike()


def in_simulator(log: Path) -> Callable[[str, int], Process]:
    """Makes processes as ``Process`` does, in which there are simulated devices."""

    def process(kind: str, memory: int = 0) -> Process:
        made = Process(kind, memory)
        command = (sys.executable, "-m", "tests.cuda.simulated_process", kind, str(memory), str(log))
        object.__setattr__(made, "_command", command)
        return made

    return process


def test_a_search_over_two_devices(
    gpu: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    """Each of them checks and times candidates in a process of its own, and there is one winner."""
    file, cache, log = tmp_path / "mm.tc", str(tmp_path / "tuned.db"), tmp_path / "launches"
    file.write_text(TEXT)
    monkeypatch.setattr(workers, "Process", in_simulator(log))
    monkeypatch.setattr(search_setup, "_measured_roofs", lambda *_: ROOFS)
    monkeypatch.setattr(search_setup, "calibration", lambda *_: None)
    command = [str(file), "--size", "M=5,K=7,N=3", "--target", "cuda", "--cache", cache, "--jobs", "1"]
    assert tune.main([*command, "--devices", "0,1", "--budget", "12 trials", "--effort", "quick"]) == 0
    assert "12 trials; the budget is spent" in capsys.readouterr().out
    assert set(re.findall(r" on (\d):", log.read_text())) == {"0", "1"}
    assert cache_command.main(["list", cache]) == 0
    assert re.search(r"  mm +5x7 7x3  float32  cuda:sm_90a  2\.5 ms +\S+ +12\n", capsys.readouterr().out)
    assert cache_command.main(["verify", cache]) == 0
