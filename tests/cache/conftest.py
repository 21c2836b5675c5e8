"""Places for caches: files always, and a PostgreSQL server where ``TC_TEST_POSTGRES`` names one."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text


@dataclass(slots=True)
class Places:
    """Names of new caches, each of its own."""

    make: Callable[[], str]

    def __call__(self) -> str:
        return self.make()


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Any number of caches that do not exist yet, in files or on a server."""
    if request.param == "sqlite":
        yield Places(lambda: str(tmp_path / f"{secrets.token_hex(4)}.db"))
        return
    server = os.environ.get("TC_TEST_POSTGRES")
    if server is None:
        pytest.skip("needs a server: make test-postgres")
    made: list[str] = []

    def make() -> str:
        made.append(f"test_{secrets.token_hex(8)}")
        _command(server, f'CREATE DATABASE "{made[-1]}"')
        return make_url(server).set(database=made[-1]).render_as_string(hide_password=False)

    yield Places(make)
    for name in made:
        _command(server, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def where(places: Places) -> str:
    """A cache that does not exist yet."""
    return places()


@pytest.fixture
def root() -> None:
    """Skips a test that needs the rights of root."""
    if os.geteuid() != 0:
        pytest.skip("only root can play several users")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """``disk("size=300k")`` is the folder of a new file system in memory, with such options of ``mount``."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"mode=0755,{options}", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("a file system cannot be mounted here")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _command(server: str, sql: str) -> None:
    with create_engine(server, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(sql))
