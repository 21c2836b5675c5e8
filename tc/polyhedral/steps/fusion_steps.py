"""Fusion: statements that run in the loops of others whose values they read."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items

import islpy as isl

from tc.polyhedral.steps.loops_around import Nest
from tc.polyhedral.steps.step import Rule, Step


def fusion_steps(nests: Items[Nest]) -> Iterator[Step]:
    """A step for each tensor that is read in the loops in which it is made.  ``nests``: in order of the program."""
    own = list({nest.statement.name: nest for nest in reversed(nests) if not nest.begins}.values())[::-1]
    found: dict[Step, None] = {}
    for place, producer in enumerate(own):
        for consumer in own[place + 1 :]:
            step = _fused(producer, consumer)
            if step is not None:
                found[step] = None
    yield from found


def _fused(producer: Nest, consumer: Nest) -> Step | None:
    read = {relation.get_tuple_name(isl.dim_type.out) for relation in consumer.statement.reads}
    reductions = (producer.statement.body.reduction, consumer.statement.body.reduction)
    finishes = consumer.tensor == producer.tensor
    if producer.tensor not in read or (finishes and reductions[1] is not None):
        return None
    around = {id(loop.member) for loop in producer.loops}
    shared = [loop.text for loop in consumer.loops if id(loop.member) in around]
    if not shared:
        return None
    rule = Rule.MAP_MAP if reductions == (None, None) else Rule.REDUCE_MAP
    loops = f"the loops over {', '.join(shared)}"
    if finishes:
        return Step(rule, f"{consumer.tensor} goes through its next statement in {loops} of the one before")
    return Step(rule, f"{consumer.tensor} in {loops} of {producer.tensor}")
