"""Nodes: a call of a comprehension, views and joins, which move nothing, an operator that the host computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tc.base.frozen import frozen
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.views import Viewing
from tc.language.program.program import Program

if TYPE_CHECKING:
    import numpy as np

    from tc.graph.ir.values import Value

    HostFunction: TypeAlias = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


class Operator(Protocol):
    """What a comprehension was made from, as data; rules of rewriting match it."""

    def text(self, operands: Sequence[Value]) -> str:
        """The comprehension for operands of these types and ranks."""


@frozen
class Call:
    """Runs a comprehension, by its program; operands and results are in the order of its arguments and results.

    ``origin``: the place in the model that it comes from, for messages.  ``operator``: what the comprehension was made
    from; None where nothing is known but its text.
    """

    program: Program
    operands: tuple[str, ...]
    results: tuple[str, ...]
    origin: str = field(default="", compare=False)
    operator: Operator | None = None


@frozen
class View:
    """Other shapes and strides of the operand; its first element is ``offset`` elements after the operand's."""

    operand: str
    result: str
    how: Viewing
    offset: Dimension
    origin: str = field(default="", compare=False)

    @property
    def operands(self) -> tuple[str, ...]:
        """The only one."""
        return (self.operand,)

    @property
    def results(self) -> tuple[str, ...]:
        """The only one."""
        return (self.result,)


@frozen
class Host:
    """What no comprehension computes: ``function`` takes and gives NumPy arrays, on the host.

    ``operator``: what it is called in ``explain``, where such nodes are counted.
    """

    operator: str
    function: HostFunction = field(compare=False)
    operands: tuple[str, ...]
    results: tuple[str, ...]
    origin: str = field(default="", compare=False)


@frozen
class Join:
    """The operands one after the other along an axis, each of which has been written to its part of the result.

    Operands are made by calls or by the host, or look at all of such a value; their strides are those of the result.
    Planning makes joins of concatenations.
    """

    operands: tuple[str, ...]
    result: str
    axis: int
    origin: str = field(default="", compare=False)

    @property
    def results(self) -> tuple[str, ...]:
        """The only one."""
        return (self.result,)


Node: TypeAlias = Call | View | Host | Join
