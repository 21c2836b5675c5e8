"""Products by matrix instructions that are measured beside PyTorch's: what they are, and that both compute the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tc
from benchmarks.__main__ import main
from benchmarks.matrices import MatrixCase, arguments, cases, deviation
from tests.translated import translated
from tests.turns import every

CASES = {case.name: case for case in cases()}
# At which the emulator runs one case of each kind.
SMALL = {
    "warps-AB-4096-4096-4096": ((40, 48), (48, 32)),
    "groups-ABt-2048-2048-2048": ((64, 64), (64, 64)),
    "streams-ABt-4096-4096-512": ((64, 128), (72, 128)),
    "linear-warps-2048": ((32, 48), (40, 48), (40,), (32, 40)),
    "int8-ABt-1024": ((32, 64), (16, 64)),
    "3xtf32-ABt-1024": ((32, 24), (16, 24)),
    "attention-128-512-64": ((1, 64, 32), (1, 80, 32), (1, 80, 24)),
    "conv-bf16-64": ((1, 16, 10, 20), (16, 16, 3, 3)),
}


@pytest.mark.parametrize("name", SMALL)
def test_results_are_those_of_pytorch(name: str) -> None:
    case = replace(CASES[name], shapes=SMALL[name])
    given = arguments(case, "cpu")
    found = case.definition(*given, target="emulator", options=case.options)
    assert deviation(case, found, given) < (1e-6 if case.type in ("int8", "float") else 6e-3)


def test_a_wrong_result_is_noticed() -> None:
    case = replace(CASES["int8-ABt-1024"], shapes=((8, 8), (8, 8)))
    given = arguments(case, "cpu")
    right = case.peer(*given)
    assert deviation(case, right, given) == 0
    right[3, 4] += 1
    assert deviation(case, right, given) > 0


@pytest.mark.parametrize("case", every(6, CASES.values()), ids=lambda case: case.name)
def test_every_case_is_mapped(case: MatrixCase) -> None:
    made = translated(case.definition, *case.shapes, target="cuda:sm_90a", options=case.options)
    assert "mma.sync" in made.source.text or "wgmma" in made.source.text


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe() -> None:
        raise tc.DeviceError("there is no GPU")

    monkeypatch.setattr("benchmarks.matrices.describe_gpu", describe)
    with pytest.raises(SystemExit, match=r"^error: there is no GPU$"):
        main(["matrices"])


def test_names_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert len({case.name for case in cases()}) == len(list(cases()))
    with pytest.raises(SystemExit):
        main(["matrices", "--kernels", "tmm"])
    assert "no case is called 'tmm'; known: warps-ABt-1024-1024-1024, groups" in capsys.readouterr().err
