"""How long it takes until options are proven or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.__main__ import main
from benchmarks.proofs import DEFINITIONS, MOST_SECONDS, TARGETS, Decision, Definition, decide, drawn, slow
from tc.targets.options import CpuOptions, GpuOptions, ScheduleOptions


def definition_called(name: str) -> Definition:
    return next(definition for definition in DEFINITIONS if definition.name == name)


def test_a_line_for_every_definition_and_target(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--kernels", "transpose,moments-small", "--targets", "cpu:x86-64-v3,emulator", "--count", "2"]
    main(["proofs", *arguments, "--jobs", "1"])
    table, _, longest = capsys.readouterr().out.partition("\nthe slowest of each:\n")
    head, *lines = table.splitlines()
    assert head.split() == ["seconds", "target", "proven", "refused", "undecided", "median", "slowest"]
    names = [tuple(line.split()[:2]) for line in lines]
    assert names == [(k, t) for k in ("transpose", "moments-small") for t in ("cpu:x86-64-v3", "emulator")]
    assert all(sum(map(int, line.split()[2:5])) == 2 for line in lines)
    for (kernel, target), line in zip(names, longest.splitlines(), strict=True):
        assert line.startswith(f"{kernel} on {target}: ")
        kind = CpuOptions if target.startswith("cpu") else GpuOptions
        assert kind.from_json(line[line.index("{") :]) in drawn(definition_called(kernel), target, 2, seed=0)


def test_options_are_drawn_from_the_space_of_the_target() -> None:
    for definition in DEFINITIONS:
        for target in TARGETS:
            found = drawn(definition, target, 3, seed=1)
            assert found == drawn(definition, target, 3, seed=1) != drawn(definition, target, 3, seed=2)
            assert {type(options) for options in found} == {CpuOptions if target.startswith("cpu") else GpuOptions}


def test_who_takes_too_long_is_named() -> None:
    mm = DEFINITIONS[0]
    proven = decide(mm, "cpu:x86-64-v3", CpuOptions(ScheduleOptions(tile=(8,))))
    refused = decide(mm, "cpu:x86-64-v3", CpuOptions(ScheduleOptions(tile=(8,) * 9)))
    assert (proven.decision, refused.decision) == (Decision.PROVEN, Decision.REFUSED)
    assert slow([proven, refused]) == []
    late = replace(proven, seconds=2 * MOST_SECONDS)
    undecided = replace(refused, decision=Decision.UNDECIDED)
    first, second = slow([undecided, late])
    assert first.startswith('mm on cpu:x86-64-v3: proven after 6.0 s: {"schedule": {"fusion"')
    assert second.startswith("mm on cpu:x86-64-v3: undecided after ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--kernels", "transposed"], "no definition is called 'transposed'; did you mean 'transpose'?"),
        (["--count", "0"], "--count and --jobs must be at least 1"),
    ],
)
def test_what_is_not_there_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["proofs", *arguments])
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err
