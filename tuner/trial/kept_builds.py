"""Executables by source, shared by the builders of a search: different options often print the same source."""

from __future__ import annotations

import os
from pathlib import Path

from tc.artifact.executable import Executable
from tc.artifact.packing import pack, unpack


class KeptBuilds:
    """Executables in a folder, which several processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, source: str) -> Executable | None:
        """What was built of the source with this digest; None if nothing was."""
        try:
            return unpack(self._path(source).read_bytes())
        except FileNotFoundError:
            return None

    def keep(self, source: str, executable: Executable) -> None:
        """From now on, everybody finds it, if there is room for it."""
        path = self._path(source)
        if path.exists():
            return
        # Whoever reads meanwhile finds all of it, or nothing.
        draft = path.with_suffix(f".{os.getpid()}")
        try:
            draft.write_bytes(pack(executable))
            draft.replace(path)
        except OSError:  # on a full disk, everybody builds their own
            draft.unlink(missing_ok=True)

    def _path(self, source: str) -> Path:
        return self._folder / f"built-{source}.tc"
