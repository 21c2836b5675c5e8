"""Python programs in processes of their own, for what would disturb the tests or outlive them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]


def run(program: str, *, environment: Mapping[str, str] | None = None, under: tuple[str, ...] = ()) -> str:
    """What a program printed; it must end well, or it is killed with its children when patience ends.

    ``environment`` adds to the variables of this process; ``under``: the command that runs Python.  The modules of the
    tests can be imported.
    """
    command = (*under, sys.executable, "-W", "ignore::DeprecationWarning", "-c", program)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            raise AssertionError(f"still running after {PATIENCE:g} s\n{output}\n{errors}") from None
    assert process.returncode == 0, f"exit status {process.returncode}\n{output}\n{errors}"
    return output
