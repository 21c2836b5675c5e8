"""What compiling the suite takes, without anything to run it on."""

from __future__ import annotations

import re

import pytest

from benchmarks.__main__ import main
from benchmarks.reporting.compilation import COLUMNS
from tc.polyhedral.grid_passes import COMPLETING_PASSES, GRID_LOOP_PASSES, GRID_PASSES, LAST_GRID_LOOP_PASSES
from tc.polyhedral.processor_passes import LOOP_PASSES, PASSES, PREFETCH_PASSES

TILED = '{"schedule": {"tile": [64, 64, 16]}, "block": [16, 8], "stages": 2}'


def test_a_line_for_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    main(["compile", "--target", "emulator", "--kernels", "tmm-128-32-256,lut1"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[1 : len(COLUMNS) + 1] == list(COLUMNS)
    assert [line.split()[0] for line in lines] == ["tmm-128-32-256", "lut1"]
    for line in lines:
        *stages, total = map(float, line.split()[1:])
        assert len(stages) == len(COLUMNS)
        assert 0 < sum(stages) < total


def test_what_a_gpu_gives_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    main(["compile", "--target", "cuda:sm_80", "--kernels", "tmm-128-32-256", "--with", TILED])
    _, line, predicted, loop = capsys.readouterr().out.splitlines()
    assert re.search(r"  \(4,2\) x \(16,8\), \d+, 0 B spilled, \d+ B shared, \d+%$", line)
    assert re.search(r"^ +\d+ instructions, \d+% multiply-adds, \d+ shared reads, at least \d+ clocks of a warp$", loop)
    assert re.search(r"^ +predicted \d+\.\d+ us on A100: \d+\.\d+ us: \w[\w -]+ \d+%, ", predicted)


def test_every_pass_has_a_column() -> None:
    columns = {name for names in COLUMNS.values() for name in names}
    loops = (*LOOP_PASSES, *GRID_LOOP_PASSES, *LAST_GRID_LOOP_PASSES, *COMPLETING_PASSES, *PREFETCH_PASSES)
    assert {name for name, _ in (*PASSES, *GRID_PASSES, *loops)} <= columns


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--kernels", "tmmm"], "tmmm"),
        (["--with", "{"], "Expecting"),
        (["--with", '{"blocks": [1]}'], "GpuOptions has no option 'blocks'; did you mean 'block'?"),
    ],
)
def test_what_is_not_there_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compile", *arguments])
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err
