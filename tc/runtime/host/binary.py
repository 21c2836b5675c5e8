"""What a compiler makes of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tc.base.frozen import frozen


@frozen
class KernelUse:
    """What the assembler says of a kernel: registers of a thread; bytes of its stack and of what it spills there.

    ``static_shared``: bytes of a block's shared memory, without what launches add.
    """

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    static_shared: int


@frozen
class Binary:
    """Code for one target, and what the kernels in it use, by name, where the compiler says so."""

    code: bytes
    kernels: Mapping[str, KernelUse] = field(default_factory=dict)
