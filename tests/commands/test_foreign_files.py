"""What is no cache: every command says so in a line, and leaves it as it is."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tc.commands.cache import main
from tc.commands.tune import main as tune

TEXT = "def twice(float(M) x) -> (y) { y(m) = 2 * x(m) }"


def database(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)
    file.chmod(0o600)


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (lambda file: file.write_text(TEXT), "is not a cache of tc (file is not a database); name another file"),
    "noise": (
        lambda file: file.write_bytes(b"\xff\x00" * 3000),
        "is not a cache of tc (file is not a database); name ",
    ),
    "empty": (lambda file: file.touch(), "is empty; "),
    "a folder": (lambda file: file.mkdir(), "is a folder, not a cache; name a file in it"),
    "a pipe": (os.mkfifo, "is not a regular file; name another one"),
    "a link to itself": (lambda file: file.symlink_to(file), "cannot be the name of a file (a symbolic link leads"),
    "a device": (lambda file: file.symlink_to("/dev/null"), "/dev/null is not a regular file; name another one"),
    "bookmarks": (lambda file: database(file, "CREATE TABLE bookmarks (url)"), "belongs to another application"),
    "of meta": (lambda file: database(file, "CREATE TABLE meta (name, value)"), "belongs to another application"),
    "of strange meta": (lambda file: database(file, "CREATE TABLE meta (a)"), "belongs to another application"),
    "with a view": (
        lambda file: database(file, "CREATE VIEW v AS SELECT 1"),
        "is not a cache of tc: it holds the view",
    ),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": (),
    "show": ("00",),
    "verify": (),
    "manifest": (),
    "prune": ("--older-than", "1d"),
    "export": ("--ship", "out.db"),
}


def state(file: Path) -> tuple[object, ...]:
    content = file.read_bytes() if file.is_file() else b""
    return content, file.lstat().st_mode, sorted(path.name for path in file.parent.iterdir())


@pytest.mark.parametrize("kind", FOREIGN)
def test_commands_refuse_it_in_a_line(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, message = FOREIGN[kind]
    file, kernels = tmp_path / "foreign.db", tmp_path / "kernels.tc"
    make(file)
    kernels.write_text(TEXT)
    before = state(file)
    calls = [partial(main, [name, str(file), *more]) for name, more in COMMANDS.items()]
    calls += [partial(main, ["merge", "all.db", str(file)]), partial(main, ["diff", str(file), str(file)])]
    calls.append(partial(tune, ["report", str(file)]))
    if kind != "empty":
        calls.append(partial(tune, [str(kernels), "--size", "M=3", "--cache", str(file)]))
    for call in calls:
        status, printed = call(), capsys.readouterr()
        said = printed.err or printed.out
        assert status in (1, 2), said
        assert message in said
        assert len(said.splitlines()) == 1
        (tmp_path / "all.db").unlink(missing_ok=True)
    assert state(file) == before


@pytest.fixture
def nobody() -> Iterator[int]:
    """This process as a user who owns nothing, whom permissions keep out."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    user = 65534
    try:
        yield user
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may go through, unlike those of pytest."""
    with TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def test_what_may_not_be_read(open_folder: Path, capsys: pytest.CaptureFixture[str], nobody: int) -> None:
    folder = open_folder / "theirs"
    folder.mkdir()
    os.chown(folder, nobody, nobody)
    file = folder / "k.db"
    database(file, "CREATE TABLE bookmarks (url)")
    # What it imports may lie where only root can read.
    assert main(["list", str(file)]) == 2
    capsys.readouterr()
    os.chown(file, nobody, nobody)
    file.chmod(0o000)
    os.seteuid(nobody)
    for arguments in (["list", str(file)], ["prune", str(file)], ["manifest", str(file)]):
        assert main(arguments) == 2
        assert capsys.readouterr().err == (
            f"tc-cache: {file} cannot be opened (unable to open database file); check its permissions and those of its "
            "folder, or make a copy for a read-only place with `tc-cache export --ship`\n"
        )
