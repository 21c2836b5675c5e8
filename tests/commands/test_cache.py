"""``tc-cache`` on a small real cache: what it prints, and with which exit status it ends."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tc.artifact.packing import options_text
from tc.base.counted import bytes_text
from tc.base.errors import OptionsError
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tc.commands.cache import main
from tc.commands.contents.quantities import parse_age, parse_size
from tc.targets.options import CpuOptions, ScheduleOptions
from tc.targets.target import processor
from tests.cache import samples
from tests.commands.caches import add_variant, command, measure, summary, trial
from tests.programs import ROOT

SECRET = b"0123456789abcdef0123456789abcdef"


def said(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> str:
    """What a command prints on standard output; it says nothing on standard error."""
    assert main([str(argument) for argument in arguments]) == status
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line with which a command says what cannot be done."""
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    return line


def key_of(cache: Path, name: str) -> str:
    return summary(cache, name).ingredients.key


def tile(cache: Path, name: str, size: int) -> str:
    """Adds a variant of a kernel with another tile; its identity."""
    kernel = summary(cache, name)
    options = options_text(CpuOptions(ScheduleOptions(tile=(size,))))
    variant = replace(kernel.variants[0], options=options, source="// another one")
    return add_variant(cache, kernel.ingredients, variant).identity


# --- list ------------------------------------------------------------------------------------------------------------


def test_list_prints_a_line_for_every_kernel(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    headings, mm, pick = said(capsys, "list", cache).splitlines()
    assert headings.split() == ["key", "definition", "shapes", "types", "target", "time", "speed-up", "trials"]
    target = summary(cache, "mm").ingredients
    where = f"{target.target}:{target.architecture}"
    where = where if len(where) <= 36 else f"{where[:33]}..."
    key = key_of(cache, "mm")[:12]
    assert re.split("  +", mm) == [key, "mm", "96x300 300x200", "float32", where, "1.5 ms", "2.50x", "2"]
    key = key_of(cache, "pick")[:12]
    assert re.split("  +", pick) == [key, "pick", "9 3", "float64 int32", where, "-", "-", "0"]


def test_list_prints_a_line_for_every_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    store = Store.open(path)
    store.add_variant(samples.kernel(), samples.variant())
    store.add_plan(samples.interface(2), [], replace(samples.plan(2, (0, 4)), title="\x1b[31mred"))
    store.add_plan(samples.interface(1), [], samples.plan(1, (0,)))
    listed = said(capsys, "list", str(path)).split("\n\n")[1].splitlines()
    assert [line.split() for line in listed] == [
        ["graph", "target", "threads", "kernels", "size"],
        [r"\x1b[31mred", "cpu:x86-64-v3", "2", "2", "(1", "missing)", "21", "B"],
        ["model", "1(x(1))", "cpu:x86-64-v3", "2", "1", "21", "B"],
    ]
    assert "graph" not in said(capsys, "list", str(path), "--target", "cuda")
    assert "graph" not in said(capsys, "list", str(path), "--program", "f")


def test_list_shows_the_program_where_no_text_names_it(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    mm = summary(cache, "mm")
    add_variant(cache, replace(mm.ingredients, program="def f(float32(n0) t0) -> (t1) {\n...}"), mm.variants[0])
    assert "  def f(float32(n0) t0) -> (t1) {  96x300" in said(capsys, "list", cache)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--target", "cpu"), ["mm", "pick"]),
        (("--target", "cpu:{architecture}"), ["mm", "pick"]),
        (("--program", "mm"), ["mm"]),
        (("--program", "t2(i0) = t0(t1(i0)) * s0"), ["pick"]),
        (("--program", "nothing"), []),
        (("--target", "cuda"), []),
    ],
)
def test_list_prints_what_is_asked_for(
    capsys: pytest.CaptureFixture[str], called: Path, arguments: tuple[str, str], names: list[str]
) -> None:
    option, value = arguments
    value = value.format(architecture=summary(called, "mm").ingredients.architecture)
    lines = said(capsys, "list", called, option, value).splitlines()
    if names:
        assert [line.split()[1] for line in lines[1:]] == names
    else:
        assert lines == [f"no such kernels in {called}"]


def test_list_prefers_what_was_measured_here(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    measure(cache, "mm", 0.0001, "another machine")
    measure(cache, "pick", 0.0001, "another machine")
    _, mm, pick = said(capsys, "list", cache).splitlines()
    assert "  1.5 ms  " in mm
    assert "  100 us  " in pick


def test_a_process_lists_the_cache_of_its_environment(called: Path, tmp_path: Path) -> None:
    settings = {**os.environ, "TC_CACHE_MODE": "off", "TC_CACHE": str(called)}
    listed = subprocess.run(
        command("cache", "list"), capture_output=True, text=True, env=settings, cwd=ROOT, check=True
    )
    assert listed.stderr == ""
    assert [line.split()[1] for line in listed.stdout.splitlines()] == ["definition", "mm", "pick"]
    (tmp_path / "tc").mkdir()
    shutil.copy(called, tmp_path / "tc")
    settings |= {"TC_CACHE": "", "XDG_CACHE_HOME": str(tmp_path)}
    own = subprocess.run(command("cache", "list"), capture_output=True, text=True, env=settings, cwd=ROOT, check=True)
    assert own.stdout == listed.stdout
    settings |= {"XDG_CACHE_HOME": "", "HOME": ""}
    none = subprocess.run(command("cache", "list"), capture_output=True, text=True, env=settings, cwd=ROOT, check=False)
    assert (none.returncode, none.stdout) == (2, "")
    assert none.stderr == "tc-cache: this user has no home folder with a cache; name a file\n"


def test_whoever_has_seen_enough_may_close_the_pipe(called: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("cache", "list", called), stdout=writing, stderr=subprocess.PIPE, cwd=ROOT, check=False, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


# --- show ------------------------------------------------------------------------------------------------------------


def test_show_prints_all_that_is_known(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    tile(cache, "mm", 7)
    mm = summary(cache, "mm")
    text = said(capsys, "show", cache, key_of(cache, "mm")[:8])
    for fact in (
        f"kernel       {mm.ingredients.key}",
        "definition   mm",
        "extents      96x300 300x200",
        f"stored       {mm.stored}",
        "    def f(float32(n0, n1) t0, float32(n1, n2) t1) -> (t2) {",
        "shapes       [[96,300],[300,200]]",
        'dtypes       ["float32","float32"]',
        f"architecture {mm.ingredients.architecture}",
        f"compiler     {mm.ingredients.compiler}",
        f"generator    {mm.ingredients.generator}",
        "    options      the defaults",
        "    options      schedule.tile = [7]",
        "    decided      register_tile: (",
        "    measured     1.5 ms (1.35 ms to 1.8 ms), 2.50x the default; 11 samples of run cafe0123, warm, ",
        f" on {processor().model}, 2026-01-01T00:00:00.000000+00:00",
        "    measured     never",
        "    resources    temporaries 0, scratch ",
        "    proof        proven: every instance of ",
        "    numerics     not classified",
        "    features     ",
        "    libc         ",
        "    origin       made compiled when it was called, at ",
        "trials       2 (1 illegal, 1 measured)",
    ):
        assert fact in text
    first, second = re.findall(r"^variant .*", text, re.MULTILINE)
    assert (first, second) == ("variant 1 of 2, which a call here runs", "variant 2 of 2")


def test_show_prints_the_source_of_the_winner(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    (variant,) = summary(cache, "mm").variants
    assert said(capsys, "show", cache, variant.kernel, "--source") == variant.source.removesuffix("\n") + "\n"
    (default,) = summary(cache, "pick").variants
    tile(cache, "pick", 3)
    assert said(capsys, "show", cache, default.kernel, "--source").strip() == default.source.strip()


def test_show_needs_the_key_of_one_kernel(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert refused(capsys, "show", cache, "xyz") == (
        f"tc-cache: {cache} has no kernel whose key begins with 'xyz'; see `tc-cache list`"
    )
    keys = ", ".join(sorted(key_of(cache, name)[:12] for name in ("mm", "pick")))
    assert refused(capsys, "show", cache, "") == (
        f"tc-cache: 2 kernels have keys that begin with '': {keys}; give more digits"
    )


def test_a_kernel_that_was_only_tried_has_no_source(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    mm = summary(cache, "mm")
    tried = replace(mm.ingredients, shapes="[[1,1],[1,1]]")
    Store.open(cache).add_kernel(tried)
    Store.open(cache).add_trial(replace(trial(mm.variants[0], 1, None), kernel=tried.key))
    assert "trials       1 (1 illegal)" in said(capsys, "show", cache, tried.key)
    assert refused(capsys, "show", cache, tried.key, "--source") == (
        f"tc-cache: kernel {tried.key[:12]} has no variant that a call here would run"
    )


# --- several caches --------------------------------------------------------------------------------------------------


def test_merge_says_what_was_gained(capsys: pytest.CaptureFixture[str], called: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.db"
    gained = f"{target} gained 2 kernels, 2 variants, 1 measurement, 2 trials, 2 texts, 3 natives\n"
    assert said(capsys, "merge", target, called) == gained
    assert said(capsys, "merge", target, called, called) == f"{target} gained nothing\n"
    assert refused(capsys, "merge", target, called, tmp_path / "none.db") == (
        f"tc-cache: {tmp_path}/none.db does not exist; name the file of a cache"
    )
    (tmp_path / "noise.db").write_bytes(b"noise" * 1000)
    assert refused(capsys, "merge", target, tmp_path / "noise.db").startswith(
        f"tc-cache: nothing was merged: {tmp_path}/noise.db is not a cache of tc (file is not a database); name another"
    )


def test_diff_says_what_tells_caches_apart(capsys: pytest.CaptureFixture[str], cache: Path, called: Path) -> None:
    assert said(capsys, "diff", cache, called) == ""
    measure(cache, "pick", 0.25, "another machine")
    lines = said(capsys, "diff", cache, called, status=1).splitlines()
    winner = summary(cache, "pick").variants[0].identity[:12]
    assert lines[0].startswith("another winner with ")
    assert f" on another machine: {key_of(cache, 'pick')[:12]}  def f(float64(n0) t0" in lines[0]
    assert lines[1:] == [f"    {cache}: variant {winner}", f"    {called}: none"]
    mm = summary(cache, "mm")
    add_variant(cache, replace(mm.ingredients, shapes="[[1,2],[2,3]]"), mm.variants[0])
    for arguments in ((cache, called), (called, cache)):
        lines = said(capsys, "diff", *arguments, status=1).splitlines()
        (line,) = (line for line in lines if line.startswith("only in"))
        assert re.fullmatch(rf"only in {cache}: [0-9a-f]{{12}}  def f\(.*  1x2 2x3  float32  cpu:.*", line)


def test_prune_says_what_went(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    tile(cache, "pick", 3)
    nothing = said(capsys, "prune", cache, "--older-than", "90d", "--keep-bytes", "1G")
    assert re.fullmatch(rf"{cache} lost nothing; \d+ KiB became \d+ KiB\n", nothing)
    lines = said(capsys, "prune", cache, "--keep-bytes", "1K").splitlines()
    assert re.fullmatch(rf"{cache} lost 2 variants; \d+ KiB became \d+ KiB", lines[0])
    assert lines[1:] == ["what is left are winners, which stay"]
    assert len(summary(cache, "mm").variants) == 1


def test_prune_refuses_what_it_does_not_understand(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert refused(capsys, "prune", cache, "--older-than", "soon") == (
        "tc-cache: an age is written as 30min, 12h, 90d or 4w, got 'soon'"
    )
    assert refused(capsys, "prune", cache, "--keep-bytes", "-1") == (
        "tc-cache: a size is written as 500K, 200M or 1G, got '-1'"
    )
    missing = cache.with_name("none.db")
    assert refused(capsys, "prune", missing) == f"tc-cache: {missing} does not exist; name the file of a cache"
    assert not missing.exists()


def test_quantities() -> None:
    assert [parse_age(text).days for text in ("90d", " 4w ", "36 h", "0.5w")] == [90, 28, 1, 3]
    assert parse_age("12h") == timedelta(hours=12)
    assert [parse_size(text) for text in ("12", "1k", "1.5K", "2 MiB", "1GB")] == [12, 1024, 1536, 2 << 20, 1 << 30]
    assert [bytes_text(size) for size in (0, 1023, 1536, 5 << 20, 3 << 41)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5 MiB",
        "6 TiB",
    ]
    assert parse_age("1d 12h") == timedelta(days=1.5)
    assert [parse_age(text).seconds for text in ("10min", "90 s", "2 Hours")] == [600, 90, 7200]
    assert parse_age("2 weeks") == timedelta(weeks=2)
    for text in ("", "d", "1", "1m", "1h30m", "3 m", "3 months", "1h1d", "999999999w", "1e3d", "-1d", "\u0663d"):
        with pytest.raises(OptionsError, match=r"an age is written as 30min, 12h, 90d or 4w, got "):
            parse_age(text)
    for text in ("", "G", "1X", "1e3", "-1", "1" * 20, "\u0663"):
        with pytest.raises(OptionsError, match=r"a size is written as 500K, 200M or 1G, got "):
            parse_size(text)


# --- whole files -----------------------------------------------------------------------------------------------------


def test_verify_finds_damage(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert said(capsys, "verify", cache) == ""
    with sqlite3.connect(cache) as connection:
        connection.execute("UPDATE variants SET source = 'int \x1b[31m;' WHERE kernel = ?", (key_of(cache, "mm"),))
    connection.close()
    (complaint,) = said(capsys, "verify", cache, status=1).splitlines()
    assert re.fullmatch(
        rf"{cache} is damaged: record '[0-9a-f]{{64}}' of table variants: its content does not match its hash; "
        "restore the file from a copy or run `tc-cache verify`",
        complaint,
    )
    missing = cache.with_name("none.db")
    assert refused(capsys, "verify", missing) == f"tc-cache: {missing} does not exist; name the file of a cache"


def test_manifest_is_the_readers(capsys: pytest.CaptureFixture[str], called: Path, tmp_path: Path) -> None:
    assert said(capsys, "manifest", called) == f"{Reader.open(called).manifest()}\n"
    assert refused(capsys, "manifest", tmp_path / "none.db") == (
        f"tc-cache: {tmp_path}/none.db does not exist; make a cache with tc-tune, or name another file"
    )


def test_seals_are_made_and_checked(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    key, short = tmp_path / "key", tmp_path / "short"
    key.write_bytes(SECRET)
    short.write_bytes(b"short")
    unsealed = refused(capsys, "list", cache, "--key", key)
    assert re.fullmatch(rf"tc-cache: {cache}: record '.*' of table texts is not sealed; use the key .*", unsealed)
    shipped = tmp_path / "shipped.db"
    ship(cache, shipped, seal=SECRET)
    assert len(said(capsys, "list", shipped, "--key", key).splitlines()) == 3
    assert said(capsys, "verify", shipped, "--key", key) == ""
    assert refused(capsys, "list", cache, "--key", tmp_path / "none") == (
        f"tc-cache: --key: cannot read {tmp_path}/none: No such file or directory; name the file with the secret"
    )
    assert refused(capsys, "list", cache, "--key", short) == (
        f"tc-cache: --key: the secret in {short} has 5 bytes, needs 16 at least"
    )
    settings = {**os.environ, "TC_CACHE_KEY": str(short)}
    listed = subprocess.run(
        command("cache", "list", shipped), capture_output=True, text=True, env=settings, cwd=ROOT, check=False
    )
    assert (listed.returncode, listed.stdout) == (2, "")
    assert listed.stderr == f"tc-cache: TC_CACHE_KEY: the secret in {short} has 5 bytes, needs 16 at least\n"


@pytest.mark.parametrize("arguments", [[], ["list", "a", "b"], ["explode"], ["merge", "a"], ["export", "a"]])
def test_arguments_that_mean_nothing(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: tc-cache" in capsys.readouterr().err


def test_help_begins_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["prune", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        printed = capsys.readouterr().out
        assert 0 < printed.index("\n  tc-cache ") < printed.index("\noptions:\n")
        assert all(len(line) <= 120 and line == line.rstrip() for line in printed.splitlines())


def test_manifests_of_several_files_stand_before_their_names(capsys: pytest.CaptureFixture[str], called: Path) -> None:
    assert main(["manifest", str(called)]) == 0
    (alone,) = capsys.readouterr().out.splitlines()
    assert main(["manifest", str(called), str(called)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{alone}  {called}"] * 2


@pytest.mark.parametrize(("where", "status"), [(">/dev/full", 2), (">&-", 0)])
def test_output_that_goes_nowhere(tmp_path: Path, where: str, status: int) -> None:
    """A full disk is said in a line; a closed output is accepted."""
    Store.open(tmp_path / "a.db")
    command = f'"$0" -m tc.commands.cache list "$1" {where}'
    ended = subprocess.run(
        ["sh", "-c", command, sys.executable, tmp_path / "a.db"], check=False, capture_output=True, text=True
    )
    full = "tc-cache: cannot print: No space left on device; look at where the output goes\n"
    assert (ended.returncode, ended.stderr) == (status, full if status else "")
