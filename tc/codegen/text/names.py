"""Names of the source text: every name of a user becomes one that means nothing else to a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tc.base.frozen import frozen
from tc.polyhedral.ir.loops import LoopProgram


@frozen
class Names:
    """From names of a program to names of its source.

    A prefix keeps user names away from keywords, macros and library functions, and lets them start with digits:
    ``t_`` for tensors, ``s_`` for scalars and symbolic sizes.
    """

    tensors: Mapping[str, str]
    scalars: Mapping[str, str]


def names_of(program: LoopProgram) -> Names:
    """The names of everything that the bodies of ``program`` mention."""
    return Names(
        tensors=_renamed("t_", (buffer.name for buffer in (*program.buffers, *program.temporaries, *program.promoted))),
        scalars=_renamed("s_", (name for name, _ in (*program.scalars, *program.sizes))),
    )


def loop_variable(depth: int) -> str:
    """The iterator of a loop that has ``depth`` loops around it."""
    return f"c{depth}"


def comment(text: str) -> str:
    """A line comment; whatever could end or continue one is made harmless."""
    return "// " + re.sub(r"[^ -\[\]-~]|\?\?/", "?", text)


def _renamed(prefix: str, names: Iterable[str]) -> dict[str, str]:
    renamed: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in renamed:
            continue
        plain = wanted = prefix + re.sub(r"[^A-Za-z0-9_]", "_", name)
        number = 2
        while plain in taken:
            plain = f"{wanted}_{number}"
            number += 1
        taken.add(plain)
        renamed[name] = plain
    return renamed
