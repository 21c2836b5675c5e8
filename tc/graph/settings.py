"""``Settings``: how graphs are prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.graph.memory.placing import USUAL, Placing

if TYPE_CHECKING:  # models whose plans are kept need no rules
    from tc.graph.rewrite.rule import Rule


@frozen
class Settings:
    """How graphs are prepared.

    ``rules``: of rewriting, in the order in which they are tried; none, and nothing is rewritten; None: all of
    ``tc.graph.RULES``.  ``fuse``: whether calls share kernels.  ``cuts``: the values through which none do, ``value``,
    or ``value -> result`` for one of its users; None decides that by what was measured, or else predicted.
    ``join``: whether operands of concatenations are written to their parts of the result.
    ``in_place`` and ``reorder``: see ``tc.graph.memory.plan``.
    ``arena``: intermediate values lie in one block of memory; otherwise each is allocated and freed.
    ``offsets``: how places in the arena are looked for.  ``workspace``: bytes that intermediate values may take; a
    graph that needs more is a GraphError.
    ``libraries``: PyTorch, if it is installed, and SciPy's BLAS compute the products and convolutions with which they
    were measured to be quicker than our kernels, on the processor (see ``tc.graph.libraries``).
    OptionsError for cuts that are no names, or beside ``fuse=False``, which leaves nothing to cut.
    """

    target: str | None = None
    rules: tuple[Rule, ...] | None = None
    fuse: bool = True
    cuts: tuple[str, ...] | None = None
    join: bool = True
    in_place: bool = True
    reorder: bool = True
    arena: bool = True
    offsets: Placing = USUAL
    workspace: int | None = None
    libraries: bool = False

    def __post_init__(self) -> None:
        if self.cuts is None:
            return
        if isinstance(self.cuts, str) or not all(isinstance(cut, str) for cut in self.cuts):
            raise OptionsError(f"cuts are names of values, such as ['r0 -> r1'], got {self.cuts!r}")
        if not self.fuse:
            raise OptionsError("fuse=False leaves nothing to cut; leave out either")
