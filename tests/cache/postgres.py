"""Runs the tests of the cache on a PostgreSQL server of their own: ``python -m tests.cache.postgres [ARGUMENTS]``.

The server is that of the distribution's package, which is installed if it is missing and the user is root.  Its data
lie in a temporary folder, it listens on the loopback interface only, and it stops when the tests are done.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.programs import ROOT

_INSTALLED: Final = Path("/usr/lib/postgresql")
# PostgreSQL refuses to run as root; the package brings this user along.
_USER: Final = "postgres"


def binaries() -> Path:
    """The folder of the newest installed server's programs."""
    found = _newest()
    if found is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            sys.exit("error: PostgreSQL is not installed; install it (Debian: apt-get install postgresql)")
        subprocess.run(["apt-get", "update"], check=True)
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", "postgresql"], check=True)
        found = _newest()
    if found is None:
        sys.exit(f"error: the package postgresql has no server in {_INSTALLED}")
    return found


def _newest() -> Path | None:
    servers = (program.parent for program in _INSTALLED.glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    newest = max(servers, key=lambda folder: float(folder.parent.name), default=None)
    return newest or (Path(on_path).resolve().parent if on_path else None)


@contextmanager
def server() -> Iterator[str]:
    """The URL of a new server, which is gone when the block ends."""
    programs, user = binaries(), _USER if os.geteuid() == 0 else None
    password = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="tc-postgres-") as name:
        folder = Path(name)
        secret = folder / "password"
        secret.write_text(password)
        if user is not None:
            shutil.chown(folder, user)
            shutil.chown(secret, user)
        data, port = folder / "data", _free_port()
        _run(
            user,
            programs / "initdb",
            "-D",
            data,
            "-U",
            "tc",
            "--auth=scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        _run(user, programs / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://tc:{password}@127.0.0.1:{port}/postgres"
        finally:
            _run(user, programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def _run(user: str | None, *command: str | Path) -> None:
    subprocess.run(command, user=user, cwd="/", stdout=subprocess.DEVNULL, check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """The exit status of pytest."""
    with server() as url:
        environment = {**os.environ, "TC_TEST_POSTGRES": url}
        command = (sys.executable, "-m", "pytest", "tests/cache", *sys.argv[1:])
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
