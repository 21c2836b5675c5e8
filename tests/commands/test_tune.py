"""``tc-tune`` as people and scripts use it: what it prints, how it ends, and that it goes on where it stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tc.base.environment import environment
from tc.base.generator import RELEASE
from tc.cache.format.tables import RUNS, TRIALS
from tc.commands.cache import main as look
from tc.commands.interruption import Interruption, interruptible
from tc.commands.tune import main
from tc.tuner.session.say import say
from tc.tuner.trial.measuring import Tried
from tc.tuner.trial.trials import Trials
from tests.commands.caches import command, contents, summary
from tests.programs import ROOT
from tests.turns import every
from tests.waiting import PATIENCE

JOBS = """
budget = "2 trials"
jobs = 1
[[kernel]]
text = "def add(float(N) a, float(N) b) -> (c) { c(n) = a(n) + b(n) }"
sizes = {N = 64}
dtypes = ["float64"]
[[kernel]]
file = "kernels.tc"
definition = "twice"
sizes = {M = 8, N = 16}
"""
TWICE = "def twice(float(M,N) x) -> (y) { y(m,n) = 2.0 * x(m,n) }"
RESULT = r"{}: [\d.]+ \ws \([\d.]+ \ws to [\d.]+ \ws\), ([\d.]+x )?the default, 2 trials; the budget is spent"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.tc").write_text(TWICE)
    (tmp_path / "jobs.toml").write_text(JOBS)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command says that cannot be done."""
    assert main(list(map(str, arguments))) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def tried(cache: Path) -> int:
    """How many candidates the cache knows."""
    with contents(cache) as found:
        return len({(trial.kernel, trial.options) for trial, _ in found.records(TRIALS)})


def test_a_job_file_is_tuned_and_goes_on_where_it_stopped(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    cache = folder / "tuned.db"
    assert main([str(folder / "jobs.toml"), "--cache", str(cache)]) == 0
    printed = capsys.readouterr()
    names = ("add(N=64,float64)", "twice(M=8,N=16)")
    for name, line in zip(names, printed.out.splitlines(), strict=True):
        assert re.fullmatch(RESULT.format(re.escape(name)), line)
    for name in names:
        assert re.search(
            rf"^{re.escape(name)}: {name[: name.index('(')]} on cpu:\S+: \S+ encodings", printed.err, re.MULTILINE
        )
        assert f"{name}: measured in turns:\n" in printed.err
        assert re.search(rf"^{re.escape(name)}: tile: .*, since the static rule chooses it", printed.err, re.MULTILINE)
        assert re.search(rf"^{re.escape(name)}: +\S+( \d+)? .* <- wins$", printed.err, re.MULTILINE)
    assert "known from before" not in printed.err
    assert tried(cache) == 4
    arguments = [str(folder / "kernels.tc"), "--size", "M=8,N=16", "--cache", str(cache), "--budget", "3 trials"]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.err.count("encodings; 2 trials are known from before") == 1
    assert printed.out.count(" 3 trials; the budget is spent") == 1
    assert tried(cache) == 5
    with contents(cache) as found:
        assert len(list(found.records(RUNS))) == 3


def test_a_size_that_stays_open_is_said_everywhere(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    cache, page = folder / "tuned.db", folder / "page.html"
    arguments = (folder / "kernels.tc", "--size", "M=..9,N=5", "--budget", "2 trials", "--cache", cache)
    assert main(list(map(str, arguments))) == 0
    printed = capsys.readouterr()
    assert re.fullmatch(RESULT.format(re.escape("twice(M=..9,N=5)")) + "\n", printed.out)
    assert printed.err.startswith("twice(M=..9,N=5): twice on cpu:")
    twice = summary(cache, "twice")
    assert twice.ingredients.symbolic == "[[9,[[0,0]]]]"
    assert look(["list", str(cache)]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert re.split("  +", line)[1:3] == ["twice", "1..9x5"]
    assert look(["show", str(cache), twice.ingredients.key]) == 0
    assert "\nextents      1..9x5\n" in capsys.readouterr().out
    assert main(["report", str(cache), "--output", str(page)]) == 0
    assert ">x 1..9\N{MULTIPLICATION SIGN}5 float32<" in page.read_text()


def test_a_kernel_that_fails_does_not_stop_the_others(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    text = f"{TWICE}\ndef part(float(N) x) -> (y) {{ y(i) = x(i) where i in 0:40 }}"
    (folder / "two.toml").write_text(
        f"""
budget = "1 trial"
cache = "{folder}/tuned.db"
[[kernel]]
text = '''{text}'''
definition = "part"
sizes = [{{N = 4}}, {{N = 40}}]
"""
    )
    assert main([str(folder / "two.toml"), "--quiet"]) == 1
    printed = capsys.readouterr()
    assert printed.err == "", "quiet prints the results alone"
    failed, fine = printed.out.split("part(N=40): ")
    assert failed.startswith("part(N=4): failed: ")
    assert fine.endswith(", the default, 1 trial; the budget is spent\n")


def test_arrays_beyond_all_memory_are_a_failure(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """It is known before arguments are made."""
    sizes = "M=10000000,N=1000000000"
    arguments = (folder / "kernels.tc", "--size", sizes, "--cache", folder / "tuned.db", "--quiet")
    assert main(list(map(str, arguments))) == 1
    assert re.fullmatch(
        rf"twice\({sizes}\): failed: twice: the oracle, which computes what is right, needs \S+ PiB of memory .*; "
        r"choose smaller sizes, those of y \(10000000 x 1000000000\) first\n",
        capsys.readouterr().out,
    )


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """No signal is ignored, as some are where tests run in the background."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_stops_at_once(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, number: signal.Signals
) -> None:
    def interrupted(*given: object, **_named: object) -> None:
        (stop,) = [one for one in given if isinstance(one, Interruption)]
        stop.patient = True
        assert not stop()
        signal.raise_signal(number)
        assert stop()
        signal.raise_signal(number)

    before = signal.getsignal(number)
    monkeypatch.setattr("tc.commands.tune._search", interrupted)
    arguments = (folder / "kernels.tc", "--size", "M=4,N=4", "--cache", folder / "tuned.db")
    assert main(list(map(str, arguments))) == 128 + number
    first, second = capfd.readouterr().err.splitlines()
    assert first == (
        "finishing what is in flight; press Ctrl-C again to stop at once"
        if number == signal.SIGINT
        else f"{number.name}: finishing what is in flight; a second signal stops at once"
    )
    assert second == "stopped at once; what was tried before is kept"
    assert signal.getsignal(number) is before


def test_a_signal_before_the_search_begins_stops_at_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def computed(*_given: object, **_named: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("tc.commands.tune.tuning", computed)
    arguments = (folder / "kernels.tc", "--size", "M=4,N=4", "--cache", folder / "tuned.db")
    assert main(list(map(str, arguments))) == 143


def test_signals_that_nohup_ignores_end_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", every(3, SIGNALS[1:]))
def test_a_signal_lets_the_search_finish_and_keeps_a_winner(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, number: signal.Signals
) -> None:
    """It comes when the first few candidates were tried, in one of two searches; both have a winner then."""
    tries: list[Sequence[str]] = []

    def try_all(self: Trials, options: Sequence[str]) -> list[Tried]:
        found = try_all_of(self, options)
        tries.append(options)
        if len(tries) == 3:
            signal.raise_signal(number)
        return found

    try_all_of = Trials.try_all
    monkeypatch.setattr(Trials, "try_all", try_all)
    (folder / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    cache, jobs = folder / "tuned.db", folder / "jobs.toml"
    assert main([str(jobs), "--cache", str(cache), "--budget", "1h"]) == 128 + number
    printed = capfd.readouterr()
    assert f"{number.name}: finishing what is in flight" in printed.err
    assert printed.err.endswith("interrupted; the same command goes on from here\n")
    assert [line.partition(": ")[0] for line in printed.out.splitlines()] == ["add(N=64,float64)", "twice(M=8,N=16)"]
    assert printed.out.count("; it was interrupted\n") == 2
    for name in ("add", "twice"):
        assert summary(cache, name).deciding is not None
    assert list((folder / "tmp").glob("tc-tune-*")) == []


def test_a_line_without_a_reader_ends_nothing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Whoever read along, head for example, has gone: the search goes on, and says so by its exit status."""
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            end, beginning = os.pipe()
            os.close(end)
            monkeypatch.setattr(sys, name, stack.enter_context(os.fdopen(beginning, "w")))
        arguments = (folder / "kernels.tc", "--size", "M=4,N=4", "--budget", "1 trial", "--cache", folder / "tuned.db")
        status = main(list(map(str, arguments)))
        monkeypatch.undo()
        with suppress(BrokenPipeError):
            stack.close()
    assert status == 0
    assert summary(folder / "tuned.db", "twice").deciding is not None


def test_without_a_standard_error_there_are_no_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("progress")
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_found(folder: Path) -> None:
    cache = folder / "tuned.db"
    line = command("tune", folder / "kernels.tc", "--size", "M=8,N=16", "--cache", cache, "--budget", "10m")
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        assert process.stderr is not None
        try:
            for text in process.stderr:
                if ": generation 1: " in text:
                    break
            # As a terminal does, to all processes in the foreground.
            os.killpg(process.pid, signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 130, errors
    assert errors.startswith("finishing what is in flight; press Ctrl-C again to stop at once\n")
    assert errors.endswith("interrupted; the same command goes on from here\n")
    assert output.startswith("twice(M=8,N=16): ")
    assert output.endswith("; it was interrupted\n")
    known = tried(cache)
    assert known > 0
    line = [*line[:-1], "1 trial"]
    again = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=False, timeout=PATIENCE)
    assert again.returncode == 0, again.stderr
    assert f"encodings; {known} trials are known from before" in again.stderr


def test_arguments_that_cannot_be_honoured(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    file, cache = folder / "kernels.tc", folder / "tuned.db"
    sizes = ("--size", "M=4,N=4", "--cache", cache)
    for arguments, message in (
        ((folder / "none.tc",), f"cannot read {folder}/none.tc: No such file or directory"),
        (
            (folder / "jobs.toml", "--size", "N=3"),
            "definitions, sizes, shapes, types and gradients of a job file stand in the file, not",
        ),
        ((file, "--size", "M"), "sizes are written as M=1024,K=512, where M=..1024 stays open from 1 to 1024, got 'M'"),
        ((file,), f"{file}: twice needs the sizes M, N; missing: M, N"),
        ((file, *sizes, "--definition", "once"), f"{file} defines no 'once'; defined: twice"),
        (
            (file, *sizes, "--dtype", "int8"),
            f"{file}: dtypes must be among float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, got 'i",
        ),
        ((file, *sizes, "--budget", "soon"), "'soon' is no budget; write a time as '8h'"),
        ((file, *sizes, "--budget", "-1s"), "'-1s' is no budget; write a time as '8h'"),
        ((file, *sizes, "--seed", "x"), "seed must be a number, got 'x'"),
        ((file, *sizes, "--seed", "\u00b2"), "seed must be a number, got '\u00b2'"),
        ((file, *sizes, "--jobs", "-1"), "jobs must be a number, got '-1'"),
        ((file, *sizes, "--jobs", "0"), "jobs must be from 1 to 1024, got 0"),
        ((file, "--size", "M=4,N=4,M=5"), "M has two sizes in 'M=4,N=4,M=5'; repeat --size to tune for both"),
        ((file, *sizes, "--strategy", "x"), "strategy must be one of "),
        ((file, *sizes, "--numerics", "x"), "numerics must be one of any, bitwise, got 'x'"),
        ((file, *sizes, "--target", "cpus"), "unknown target 'cpus'; did you mean 'cpu'?"),
        ((file, *sizes, "--workers", "x"), ""),
        (("report", folder / "none.db"), f"{folder}/none.db does not exist; make a cache with tc-tune"),
        (("report", "postgresql://me:secret@host/db"), "a server gives the page no name; name it with --output"),
    ):
        assert refused(capsys, *arguments).startswith(f"tc-tune: {message}")
    assert not cache.exists()
    (folder / "wrong.tc").write_text("def f(float(N) x) -> (y) { y(i) = z(i) }")
    assert refused(capsys, folder / "wrong.tc", "--size", "N=3").startswith("tc-tune: 1:")


def test_the_report_is_written_where_it_is_wanted(
    capsys: pytest.CaptureFixture[str], called: Path, folder: Path
) -> None:
    page = folder / "page.html"
    assert main(["report", str(called), "--output", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    # It is a document, not code: its owner's mask says who else reads it.
    for mask, mode in ((0o002, 0o664), (0o022, 0o644), (0o077, 0o600)):
        page.unlink()
        before = os.umask(mask)
        try:
            assert main(["report", str(called), "--output", str(page)]) == 0
        finally:
            os.umask(before)
        assert page.stat().st_mode & 0o777 == mode
    capsys.readouterr()
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert main(["report", str(called), "--output", os.devnull]) == 0
    capsys.readouterr()
    if Path("/dev/full").exists():
        assert refused(capsys, "report", called, "--output", "/dev/full") == (
            "tc-tune: cannot write /dev/full: No space left on device; name another place with --output\n"
        )
    assert [found.name for found in folder.iterdir() if "page" in found.name] == ["page.html"]
    assert refused(capsys, "report", called, "--output", folder / "none" / "page.html") == (
        f"tc-tune: cannot write {folder}/none/page.html: No such file or directory; name another place with --output\n"
    )


def test_secrets_of_the_environment_seal_and_are_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, called: Path, folder: Path
) -> None:
    key, cache = folder / "key", folder / "tuned.db"
    key.write_bytes(b"k" * 32)
    settings = replace(environment(), cache_key=str(key))
    monkeypatch.setattr("tc.commands.tune.environment", lambda: settings)
    arguments = (folder / "kernels.tc", "--size", "M=4,N=4", "--budget", "1 trial", "--quiet", "--cache", cache)
    assert main(list(map(str, arguments))) == 0
    with contents(cache, b"k" * 32) as found:
        assert len(list(found.records(TRIALS))) == 1
    capsys.readouterr()
    message = refused(capsys, "report", called, "--output", folder / "page.html")
    assert re.fullmatch(rf"tc-tune: {called}: record .* is not sealed; .*\n", message)


def test_help_begins_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert 0 < printed.index("\n  tc-tune kernels.tc ") < printed.index("\noptions:\n") < printed.index("exit status:")


@pytest.mark.parametrize(("name", "command"), [("tc-tune", main), ("tc-cache", look)])
def test_commands_say_their_version(
    capsys: pytest.CaptureFixture[str], name: str, command: Callable[[list[str]], int]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{name} {RELEASE}\n"
