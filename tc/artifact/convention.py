"""``Convention``: how a kernel is called."""

from __future__ import annotations

from dataclasses import replace

from tc.base.faults import Check
from tc.base.frozen import frozen
from tc.base.grid import GridKernel, Steps, launches
from tc.base.interface import Interface
from tc.language.program.specialization import Layout, Signature
from tc.runtime.loaded_kernel import Memory


@frozen
class Operand:
    """An array that a kernel takes: an argument or a result, where its elements lie, and whether it is stored to."""

    name: str
    layout: Layout
    writable: bool


@frozen
class Convention:
    """What the caller of a kernel brings, and what its faults mean.

    ``operands``: in the order of the kernel's parameters; its scalars are those of ``interface``, in that order, then
    the symbolic sizes of the signature.
    ``memory``: what a call needs beyond them.  ``temporaries``: bytes of those that a grid is given.
    ``checks``: the gather that stores fault number n stands at n - 1.  ``grids``: what a GPU is to run, in this order;
    ``steps``: which of these it runs for each of several steps.
    """

    interface: Interface
    signature: Signature
    operands: tuple[Operand, ...]
    memory: Memory
    temporaries: tuple[int, ...]
    checks: tuple[Check, ...]
    grids: tuple[GridKernel, ...] = ()
    steps: tuple[Steps, ...] = ()

    def __post_init__(self) -> None:
        list(launches(len(self.grids), self.steps))  # ValueError for what no compiler made

    def layout(self, name: str) -> Layout:
        """Where the elements of an operand lie; KeyError if the kernel takes no such array."""
        for operand in self.operands:
            if operand.name == name:
                return operand.layout
        raise KeyError(name)

    def renamed(self, interface: Interface) -> Convention:
        """The same for a definition that differs in names only."""
        names = dict(zip(self.interface.names, interface.names, strict=True))
        signature = Signature(
            arguments=tuple((names[name], spec) for name, spec in self.signature.arguments),
            results=tuple((names[name], spec) for name, spec in self.signature.results),
            scalars=tuple((names[name], value) for name, value in self.signature.scalars),
            aliases=tuple((names[output], names[input]) for output, input in self.signature.aliases),
            symbolic=tuple(
                replace(size, places=tuple((names[name], dimension) for name, dimension in size.places))
                for size in self.signature.symbolic
            ),
        )
        return replace(
            self,
            interface=interface,
            signature=signature,
            operands=tuple(replace(operand, name=names[operand.name]) for operand in self.operands),
            checks=tuple(replace(check, tensor=names.get(check.tensor, check.tensor)) for check in self.checks),
        )
