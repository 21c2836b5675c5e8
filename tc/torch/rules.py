"""The rules of a process: those of ATen's operators, and of comprehensions that are operators of ``torch.library``.

The latter join the graph as what they were made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tc.api.torch_operator import Registered, registered

if TYPE_CHECKING:
    from tc.graph.ir.values import Value
    from tc.torch.fx.operation import Operation, Rule, Rules


def rules() -> Rules:
    """By operator, also those that ``torch_op`` has registered so far."""
    from tc.torch.aten import RULES  # models whose plans are kept need none

    return {**RULES, **{operator: _rule(own) for operator, own in registered().items()}}


def meaning_of(operator: Any) -> str:
    """What an operator computes that a comprehension was made; empty for others."""
    own = registered().get(operator)
    return "" if own is None else f"{own.whole.definition.canonical}\n{own.plain.definition.canonical}"


def _rule(own: Registered) -> Rule:
    from tc.torch.fx.operation import UnclaimedError

    def rule(operation: Operation) -> Value | Sequence[Value | None]:
        if own.whole.interface.scalars:
            raise UnclaimedError("takes numbers beside tensors")
        given = [operation.value(argument.name) for argument in operation.node.target._schema.arguments]  # type: ignore[union-attr]
        every, few = (len(one.interface.results) for one in (own.whole, own.plain))
        used = few < every and not any(operation.wants(result) for result in range(few, every))
        made: list[Value | None] = list(operation.builder.call((own.plain if used else own.whole).program, *given))
        if every == 1:
            (only,) = made
            assert only is not None
            return only
        return [*made, *[None] * (every - len(made))]

    return rule
