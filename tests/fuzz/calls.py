"""Statements that call another definition, which is written for the occasion."""

from __future__ import annotations

from tests.fuzz.body import Body
from tests.fuzz.model import Extent, Tensor
from tests.fuzz.statements import elementwise, reduction


def call(body: Body) -> None:
    """``(P, Q) = g(A, B)`` for a new definition ``g`` with one or two results."""
    source = body.source
    able = [t for t in body.readable() if t.below is None]
    if not able:
        return
    actual = [source.choice(able) for _ in range(source.randint(1, 2))]
    callee = Body(source, body.names, {}, body.types, body.budget)
    for tensor in actual:
        callee.add_input(tensor.type, [_declared(callee, e.value) for e in tensor.extents], exact=tensor.exact)
    arguments = [tensor.name for tensor in actual]
    if source.chance(0.3):
        type = body.type()
        callee.add_scalar(type, 1)
        same = [name for name, known in body.scalars if known is type]
        arguments.append(source.choice(same) if same else "1")
    wanted = source.randint(1, 2)
    for _ in range(4):
        if len(callee.statements) < wanted:
            source.choice([elementwise, reduction])(callee)
    if not callee.values or callee.incoming:
        return
    results = list(callee.values)[-2:]
    name = body.names.definition()
    body.definitions += [*callee.definitions, callee.text(name, results)]
    targets = [body.names.tensor() for _ in results]
    left = targets[0] if len(targets) == 1 and source.chance(0.5) else f"({', '.join(targets)})"
    body.add(f"{left} = {name}({', '.join(arguments)})")
    for target, result in zip(targets, results, strict=True):
        known = callee.values[result].tensor
        extents = [e.value for e in known.extents]
        spelled = tuple(Extent(extent, f"{target}.{d}") for d, extent in enumerate(extents))
        body.know(Tensor(target, known.type, spelled, exact=known.exact))
    body.mark_read({tensor.name for tensor in actual})


def _declared(callee: Body, value: int) -> Extent:
    """A size of the callee with this value: one that has it already, or a new one."""
    same = [name for name, size in callee.sizes.items() if size == value]
    if same and callee.source.chance(0.7):
        return Extent(value, callee.source.choice(same))
    name = callee.names.size()
    callee.sizes[name] = value
    return Extent(value, name)
