"""Programs in a mount namespace of their own: where nothing can be written, as in a container with a read-only root, or
with another folder for temporary files.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.programs import ROOT

_LOCK: Final = """
sed 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .*/\\1/' /proc/self/mountinfo | tac | while read -r point; do
    mount -o remount,bind,ro "$point" 2> /dev/null
done
for folder in / /tmp /var/tmp /dev/shm "$PWD"; do
    if touch "$folder/tc-written" 2> /dev/null; then rm "$folder/tc-written"; exit 77; fi
done
"""
_SKIPPED: Final = 77


def run_read_only(
    *command: str, environment: Mapping[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """What becomes of a command where no folder can be written; skips the test where that cannot be had.

    ``environment`` adds to the variables of this process, of which those with writable folders are left out.
    """
    return _run_apart(_LOCK, command, environment or {}, check=check)


def run_with_temporary(
    folder: Path, options: str, *command: str, environment: Mapping[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """What becomes of a command that has a file system of its own, mounted with these options (``size=64k``,
    ``noexec``), for temporary files; skips the test where that cannot be had.
    """
    place = shlex.quote(str(folder))
    mount = f"mount -t tmpfs -o {options} none {place} || exit {_SKIPPED}\nexport TMPDIR={place}"
    return _run_apart(mount, command, environment or {}, check=check)


def _run_apart(
    first: str, command: Sequence[str], environment: Mapping[str, str], *, check: bool
) -> subprocess.CompletedProcess[str]:
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    script = f"{first}\nexec {shlex.join(command)}"
    variables = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    try:
        done = subprocess.run(
            [*unshare, "/bin/sh", "-c", script],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**variables, **environment},
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("needs unshare, of util-linux")
    if done.returncode == _SKIPPED or done.stderr.startswith("unshare: "):
        pytest.skip("a mount namespace of its own is not to be had here")
    if check:
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def python(program: str) -> tuple[str, ...]:
    """The command that runs a program of Python."""
    return sys.executable, "-c", program
