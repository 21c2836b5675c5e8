"""Blocks: values of which every step follows from the one before."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz.body import Body, whole
from tests.fuzz.model import Extent, Tensor, Term, reading
from tests.fuzz.skeleton import draw_skeleton
from tests.fuzz.statements import numeric_type

_STEPS = (0, 1, 1, 2, 3, 5)


def recurrence(body: Body) -> None:
    """``O(0, i) = f(i)  for t in 0:T { O(t+1, i) = g(O(t, i), t, i) }``, also from neighbours, or in two statements."""
    source = body.source
    skeleton = draw_skeleton(body, 1)
    if skeleton is None:
        return
    iterators = list(skeleton.iterators)
    free = [n for n in body.names.iterators(8) if n not in {i.name for i in iterators}]
    steps = Extent(count := source.choice(_STEPS), str(count))
    step = whole(free[0], steps)
    if not body.fits([*iterators, whole(free[1], Extent(count + 1, ""))]):
        return
    type, name = numeric_type(body), body.names.tensor()
    own = [i.name for i in iterators]
    ranges = ", ".join(i.clause for i in iterators)
    where = f" where {ranges}" if ranges else ""
    first = body.expressions(iterators)
    start = first.cast(first.value(skeleton.terms, 0), type)
    body.add(f"{name}({', '.join(['0', *own])}) = {start.text}{where}")
    extents = (
        Extent(count + 1, f"{name}.0"),
        *(Extent(i.end.value, f"{name}.{d + 1}") for d, i in enumerate(iterators)),
    )
    state = Tensor(name, type, extents, exact=not type.is_floating)
    before = reading(state, [step.name, *own])
    if iterators and source.chance(0.4):
        near = own[0]
        beside = reading(state, [step.name, f"{near} - 1", *own[1:]])
        text = f"({near} >= 1 ? {beside.text} : {before.text})"
        before = replace(before, text=text)
    inner = body.expressions([*iterators, step])
    value = inner.value([before, *skeleton.terms[: source.randint(0, 1)]], source.randint(0, 1))
    settled = inner.cast(value, type)
    # Steps that grow without end would overflow sooner in one kernel than in another.
    text = f"{type.value}(tanh({settled.text}))" if type.is_floating else settled.text
    target = f"{name}({', '.join([f'{step.name} + 1', *own])})"
    statements = [f"{target} = {text}{where}"]
    if source.chance(0.3):
        between = body.names.tensor()
        held = f"{between}({', '.join(own)})" if own else between
        statements = [f"{held} = {text}{where}", f"{target} = {held}{where}"]
    body.add(f"for {step.name} in 0:{steps.text} {{ {'  '.join(statements)} }}")
    body.know(state)
    body.mark_read((first.read | inner.read | skeleton.read) - {name})


def sweep(body: Body) -> None:
    """``O(i) = f(i)  for t in 0:T { for k in 0:N { O(k) = g(O(k-1), O(k), O(k+1), t, k) } }``: in place.

    Also without the steps around it, with other dimensions beside, and with what steps do before and after it.
    """
    source = body.source
    skeleton = draw_skeleton(body, 1)
    if skeleton is None or not skeleton.iterators:
        return
    iterators = list(skeleton.iterators)
    free = [n for n in body.names.iterators(8) if n not in {i.name for i in iterators}]
    line, *beside = iterators
    count = source.choice((0, 1, 2, 3)) if source.chance(0.7) else None
    if line.length < 1 or not body.fits([*iterators, whole(free[0], Extent(count or 1, ""))]):
        return
    step = None if count is None else whole(free[0], Extent(count, str(count)))
    type, name = numeric_type(body), body.names.tensor()
    own = [i.name for i in iterators]
    where = f" where {', '.join(i.clause for i in iterators)}"
    first = body.expressions(iterators)
    start = first.cast(first.value(skeleton.terms, 0), type)
    body.add(f"{name}({', '.join(own)}) = {start.text}{where}")
    state = Tensor(name, type, tuple(Extent(i.end.value, f"{name}.{d}") for d, i in enumerate(iterators)), exact=False)
    inner = body.expressions([*iterators, *([step] if step is not None else ())])

    def place(subscript: str) -> Term:
        return reading(state, [subscript, *own[1:]])

    def bounded(term: Term) -> str:
        settled = inner.cast(term, type)
        return f"{type.value}(tanh({settled.text}))" if type.is_floating else settled.text

    ends = line.end.text
    neighbours = (
        line.name,
        f"max({line.name} - 1, 0)",
        f"min({line.name} + 1, {ends} - 1)",
        f"({line.name} + 1) % {ends}",
    )
    reads = [place(source.choice(neighbours)) for _ in range(source.randint(1, 2))]
    value = inner.value([*reads, *skeleton.terms[: source.randint(0, 1)]], source.randint(0, 1))
    clause = f" where {', '.join(i.clause for i in beside)}" if beside else ""
    target = f"{name}({', '.join(own)})"
    operator = source.weighted(((6, "="), (1, "+="), (0.5, "max=")))
    begin = source.choice(("0", "0", "1")) if line.length > 1 else "0"
    parts = [f"for {line.name} in {begin}:{ends} {{ {target} {operator} {bounded(value)}{clause} }}"]
    if step is not None:
        for number in (0, 1):
            if source.chance(0.25):
                update = inner.value([place(source.choice(neighbours[:3]))], 0)
                parts.insert(number * len(parts), f"{target} = {bounded(update)}{where}")
        parts = [f"for {step.name} in 0:{step.end.text} {{ {'  '.join(parts)} }}"]
    body.add(parts[0])
    body.know(state)
    body.mark_read((first.read | inner.read | skeleton.read) - {name})
