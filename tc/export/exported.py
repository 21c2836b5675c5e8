"""``Exported``: a kernel under the name that it gets in an exported folder."""

from __future__ import annotations

from tc.artifact.executable import Executable
from tc.base.frozen import frozen
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, HostTarget, OpenClTarget, Target


@frozen
class Exported:
    """A kernel with its name, of its file and in C, and what comments say of it.

    ``origin``: where it comes from.  ``program``: what it computes, as text.  ``options``: those that it is made with.
    ``time``: how long a call takes.  ``seconds``, ``default_seconds``: the same as numbers, of this kernel and of the
    one with default options; 0 where nothing was measured.  ``module``: its grids are a module of their own, compiled
    already, in which they keep the names that they were generated with.
    """

    name: str
    executable: Executable
    origin: str
    program: str
    options: str
    time: str
    seconds: float = 0.0
    default_seconds: float = 0.0
    module: bool = False

    @property
    def host(self) -> HostTarget | None:
        """The kind of processor that it runs on; None if it is for a GPU."""
        target = self.executable.target
        return target if isinstance(target, CpuTarget | EmulatorTarget) else None

    @property
    def file(self) -> str:
        """Of its source."""
        return self.name + _ending(self.executable.target)


def _ending(target: Target) -> str:
    match target:
        case CudaTarget():
            return ".cu"
        case OpenClTarget():
            return ".cl"
        case _:
            return ".c"
