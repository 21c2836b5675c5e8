"""What production needs of a cache and does not find there is said before it is shipped, with what to do."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tc.cache.content.merge import merge
from tc.cache.content.prune import prune
from tc.cache.content.store import utc_now
from tc.cache.format.rows import row_of
from tc.cache.format.tables import VARIANTS
from tc.commands.cache import main
from tc.targets.target import processor
from tests.commands.caches import CALLS, add_variant, measure, summary
from tests.programs import run


def complaints(capsys: pytest.CaptureFixture[str], cache: Path) -> list[str]:
    """What ``verify`` prints; ``export --ship`` refuses, too, and writes nothing."""
    status = main(["verify", str(cache)])
    found = capsys.readouterr().out.splitlines()
    assert status == bool(found)
    target = cache.with_name("shipped.db")
    assert main(["export", str(cache), "--ship", str(target)]) == (2 if found else 0)
    printed = capsys.readouterr()
    if found:
        more = f" (and {len(found) - 1} more: `tc-cache verify`)" if len(found) > 1 else ""
        assert printed.err == f"tc-cache: nothing was shipped: {found[0]}{more}\n"
    assert target.exists() == (not found)
    return found


def change(cache: Path, *statements: str) -> None:
    with closing(sqlite3.connect(cache, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_what_calls_leave_is_enough(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert complaints(capsys, cache) == []


def test_helpers_and_texts_that_are_missing_come_back(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    """As after ``prune`` of an earlier release; the remedy that the message names is all that is needed."""
    change(cache, "DELETE FROM natives", "DELETE FROM texts")
    found = complaints(capsys, cache)
    remedy = (
        "call the kernel where there is a compiler with TC_CACHE=new.db, which must be a new file, and run "
        f"`tc-cache merge {shlex.quote(str(cache))} new.db`"
    )
    assert all(line.endswith(f"; {remedy}") for line in found)
    texts = [line for line in found if " the text in which it stands is missing for kernel " in line]
    helpers = [
        re.search(r"would need a C compiler, because it has no compiled (\S+) for (\S+); ", line) for line in found
    ]
    machine = processor().machine
    assert sorted(match.groups() for match in helpers if match) == [
        (name, machine) for name in ("dlpack.c", "pool.c", "warm.c")
    ]
    assert (len(texts), len(found)) == (2, 5)
    new = cache.with_name("new.db")
    run(CALLS, environment={"TC_CACHE": str(new), "TC_CACHE_MODE": "store"})
    merge(cache, [new])
    assert complaints(capsys, cache) == []


def test_a_helper_of_other_sources_is_none(capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path) -> None:
    change(cache, "DELETE FROM natives WHERE name = 'warm.c'")
    (line,) = complaints(capsys, cache)
    assert "because it has no compiled warm.c for " in line
    # What another version of tc needs, only that one knows: it must have something.
    mm = summary(cache, "mm")
    other = tmp_path / "other.db"
    made = add_variant(other, replace(mm.ingredients, generator="0.0.1 cafe"), mm.variants[0])
    assert made.kernel != mm.ingredients.key
    assert len(complaints(capsys, other)) == 4


def test_a_winner_without_its_code_cannot_be_shipped(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    mm = summary(cache, "mm")
    row = row_of(VARIANTS, replace(mm.variants[0], binary=b""), None, utc_now())
    with closing(sqlite3.connect(cache, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE variants SET binary = :binary, digest = :digest WHERE identity = :identity",
            {name: row[name] for name in ("binary", "digest", "identity")},
        )
    (line,) = complaints(capsys, cache)
    assert line.startswith(f"{cache} is not self-sufficient: the binary of its winner is missing for kernel ")
    assert line.endswith("; tune it again with `tc-tune`, or restore the file from a copy")
    change(cache, f"DELETE FROM variants WHERE identity = '{mm.variants[0].identity}'")
    assert main(["export", str(cache), "--ship", str(cache.with_name("s.db"))]) == 2
    assert "nothing was shipped: " in (message := capsys.readouterr().err)
    assert "the winner is missing for kernel " in message


def test_what_was_not_written_as_a_text_needs_none(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    pick = summary(cache, "pick")
    assert json.loads(pick.variants[0].origin)["text"]
    built = replace(pick.variants[0], origin=json.dumps({"text": None}))
    program = pick.ingredients.program.replace("def f", "def g")
    add_variant(cache, replace(pick.ingredients, program=program), built)
    assert complaints(capsys, cache) == []


def test_what_never_ran_on_its_machine_is_shipped_without_helpers_for_it(
    capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    mm = summary(cache, "mm")
    other = "armv8-a" if processor().machine == "x86_64" else "x86-64"
    add_variant(cache, replace(mm.ingredients, architecture=other), mm.variants[0])
    assert complaints(capsys, cache) == []


def test_pruned_files_are_enough_and_keep_their_names(
    capsys: pytest.CaptureFixture[str], cache: Path, tmp_path: Path
) -> None:
    """All that has been there for a year goes but what wins, and what that needs."""
    measure(cache, "pick")
    assert main(["list", str(cache)]) == 0
    before = capsys.readouterr().out
    later = datetime.now(UTC) + timedelta(days=365)
    report = prune(cache, older_than=timedelta(days=90), largest=1, now=lambda: later)
    assert {name: count for name, count in report.removed.items() if count} == {"trials": 4}
    assert main(["list", str(cache)]) == 0
    # Only the column of the trials is another one.
    assert [line.split()[:-1] for line in capsys.readouterr().out.splitlines()] == [
        line.split()[:-1] for line in before.splitlines()
    ]
    assert complaints(capsys, cache) == []
    settings = {"TC_CACHE": str(cache.with_name("shipped.db")), "TC_CACHE_MODE": "strict", "PATH": str(tmp_path)}
    run(f"{CALLS}\nimport sys; assert 'lark' not in sys.modules", environment=settings)
