"""What building a wheel does beside copying files: it writes down the hash of the sources."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Writes ``source_hash.txt`` beside ``tc/base/generator.py``, so that no process needs to read all sources."""

    def run(self) -> None:
        """Builds the package, and writes the hash of its sources beside them."""
        super().run()
        if self.editable_mode:  # these sources will be edited
            return
        made = Path(self.build_lib)
        own = runpy.run_path(str(made / "tc" / "base" / "source_hash.py"))
        files = own["source_files"]("tc", made / "tc") + own["source_files"]("tc.grammar", made / "tc" / "grammar")
        (made / "tc" / "base" / "source_hash.txt").write_text(own["source_hash"](files), encoding="utf-8")
