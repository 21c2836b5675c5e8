"""``TC_DUMP``: writes the text of every compilation stage into a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tc.base.errors import CompileError
from tc.base.private import make_folder, write_file
from tc.base.stage import Stage
from tc.compiler import Compilation


def dump_stages(compilation: Compilation, stages: tuple[Stage, ...], folder: Path) -> Path:
    """Write the text of every stage of the kernel into a folder of its own below ``folder``, and return that.

    Its name is the definition's and a hash of the source, so that the same kernel lands in the same place; no other
    user may read it.  CompileError if the folder cannot be written.
    """
    identity = hashlib.sha256(f"{compilation.target} {compilation.source.text}".encode()).hexdigest()[:12]
    place = folder / f"{compilation.specialization.program.name}-{identity}"
    try:
        make_folder(place)
        for position, stage in enumerate(stages):
            if stage.text:
                suffix = "c" if stage.name == "print" else "txt"
                name = f"{position:02}-{stage.name.replace(' ', '-')}.{suffix}"
                write_file(place / name, stage.text + "\n")
    except OSError as error:
        raise CompileError(
            f"TC_DUMP: cannot write {place}: {error.strerror}; name a folder that can be written"
        ) from error
    return place
