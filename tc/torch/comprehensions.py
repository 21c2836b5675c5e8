"""Rules for operators of ``torch.library`` that are comprehensions: they join the graph as what they were made of."""

from __future__ import annotations

from collections.abc import Sequence

from tc.api.torch_operator import Registered, registered
from tc.graph.ir.values import Value
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError


def rules_of_comprehensions() -> Rules:
    """By operator that ``torch_op`` has registered so far."""
    return {operator: _rule(own) for operator, own in registered().items()}


def _rule(own: Registered) -> Rule:
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
