"""Changes of matrix instructions, as data: of what lanes hold, of the roles of loops, of their ranges, of sums."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, assert_never

from tc.language.program.program import iterators_in
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.index_arithmetic import minus, modulo, plus, quotient, times
from tc.polyhedral.ir.loops import (
    BLOCK,
    ELEMENT,
    REGISTER,
    Allocation,
    Block,
    Fragment,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Lay,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Mma,
    variables,
)
from tc.polyhedral.ir.scop import Scop
from tests.polyhedral.enumeration import index

Change: TypeAlias = Callable[[Mma], Mma]

_QUADS, _GROUP = 4, 8
# What an instruction would take the bits of a factor for, or round it to.
_OTHER_TYPES = {"f16": "bf16", "bf16": "f16", "3xtf32": "tf32"}


@dataclass(frozen=True, slots=True)
class Place:
    """A node, the so manyth of a kernel, in blocks of so many threads along y.

    ``sums``: the arguments that place these.  ``steps``: how many its sums have at most.
    """

    number: int
    node: Mma
    along_y: int
    sums: frozenset[int]
    steps: int


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of one node."""

    name: str
    place: Place
    change: Change

    @property
    def equivalent(self) -> str | None:
        """Why the changed node means the same; None where it does not."""
        before, after = self.place.node, self.change(self.place.node)
        if before == after:
            return "nothing is changed"
        sides = ((before.left, after.left, 4), (before.right, after.right, 2))
        if replace(after, left=before.left, right=before.right) != before:
            return None
        for old, new, registers in sides:
            if old == new:
                continue
            if new.type != old.type or new.lay not in (old.lay, Lay.APART):
                return None
            blocks = _blocks(before)[old is before.left]
            every = list(_every(before, self.place, blocks, registers))
            assert every
            if any(_held(old, at) != _held(new, at) for at in every):
                return None
        return "every lane holds the same, however it is loaded"


def _blocks(node: Mma) -> tuple[int, int]:
    """Of columns, and of rows."""
    counts = dict(_counts(node.nest))
    return 1 if node.columns is None else counts[node.columns], counts[node.rows] // 2


def _counts(nest: LoopTree) -> Iterator[tuple[str, int]]:
    while isinstance(nest, Loop | Guard):
        if isinstance(nest, Loop):
            yield nest.iterator, nest.upper.value + 1 if isinstance(nest.upper, IndexLiteral) else 0
        nest = nest.body if isinstance(nest, Loop) else nest.then


def _every(node: Mma, place: Place, blocks: int, registers: int) -> Iterator[dict[str, int]]:
    """Whatever lanes hold, with the loops around at some iterations."""
    own = {node.lanes[0], node.lanes[1], BLOCK, REGISTER, ELEMENT}
    used = {name for side in (node.left, node.right) for s in side.subscripts for name in variables(s)} - own
    ranges = (range(_QUADS), range(place.along_y), range(blocks), range(registers), range(node.shape.elements))
    # At the same iteration of all loops, and at different ones.
    uniform = [dict.fromkeys(used, around) for around in (0, 1, 2)]
    mixed = [{name: (first + number) % 2 for number, name in enumerate(sorted(used))} for first in (0, 1)]
    for around in (*uniform, *mixed):
        for x, y, block, register, element in itertools.product(*ranges):
            part = _QUADS * (register * 2 // registers) + x
            if node.shape.elements * part + element >= place.steps:
                continue  # it is taken for 0
            held = {node.lanes[0]: x, node.lanes[1]: y, BLOCK: block, REGISTER: register, ELEMENT: element}
            yield {**around, **held}


def _held(fragment: Fragment, at: Mapping[str, int]) -> tuple[str, tuple[int, ...]]:
    return fragment.tensor, tuple(index(subscript, at) for subscript in fragment.subscripts)


# --- trees


def places(root: LoopTree, scop: Scop) -> list[Place]:
    """The nodes of a tree, in order."""
    found: list[Place] = []

    def visit(tree: LoopTree, around: tuple[Loop | Guard, ...]) -> None:
        match tree:
            case Mma():
                threads = [own for own in around if isinstance(own, Loop) and own.kind is LoopKind.THREAD]
                assert isinstance(threads[-2].upper, IndexLiteral)
                sums, along_y = _arguments_of_sums(tree, scop), threads[-2].upper.value + 1
                found.append(Place(len(found), tree, along_y, sums, _most_steps(tree, around)))
            case Loop():
                visit(tree.body, (*around, tree))
            case Allocation():
                visit(tree.body, around)
            case Block(children):
                for child in children:
                    visit(child, around)
            case Guard(condition, then, otherwise):
                visit(then, (*around, tree))
                if otherwise is not None:
                    fails = IndexOperation(IndexOperator.EQUAL, (condition, IndexLiteral(0)))
                    visit(otherwise, (*around, Guard(fails, otherwise, None)))
            case Leaf():
                pass
            case _:
                assert_never(tree)

    visit(root, ())
    return found


def _most_steps(node: Mma, around: tuple[Loop | Guard, ...]) -> int:
    """The greatest limit in any iteration of the loops that it depends on."""
    if node.limit is None:
        return node.shape.k
    asked, limits = variables(node.limit), []

    def visit(rest: tuple[Loop | Guard, ...], values: Mapping[str, int]) -> None:
        match rest:
            case ():
                assert node.limit is not None
                limits.append(index(node.limit, values))
            case (Guard(condition=condition), *others):
                if not variables(condition) <= values.keys() or index(condition, values):
                    visit(tuple(others), values)
            case (Loop() as loop, *others) if loop.iterator in asked:
                for value in range(index(loop.lower, values), index(loop.upper, values) + 1, loop.step):
                    visit(tuple(others), {**values, loop.iterator: value})
            case (_, *others):
                visit(tuple(others), values)

    visit(around, {})
    return min(max(limits), node.shape.k)


def _arguments_of_sums(node: Mma, scop: Scop) -> frozenset[int]:
    body = scop.statement(_instance(node.nest).statement).body
    return frozenset(map(body.iterators.index, iterators_in(body.subscripts)))


def with_change(root: LoopTree, number: int, change: Change) -> LoopTree:
    """The tree in which one node is another one."""
    numbers = itertools.count()

    def visit(tree: LoopTree) -> LoopTree:
        match tree:
            case Mma():
                return change(tree) if next(numbers) == number else tree
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(visit(child) for child in children))
            case Guard(condition, then, otherwise):
                return Guard(condition, visit(then), None if otherwise is None else visit(otherwise))
            case Loop() | Allocation():
                return replace(tree, body=visit(tree.body))
            case _:
                assert_never(tree)

    return visit(root)


# --- what lanes hold


def changes(place: Place) -> Iterator[Changed]:
    """All that can be changed in a node."""
    node = place.node
    for side in ("left", "right"):
        fragment: Fragment = getattr(node, side)
        for name, change in _of_fragment(node, fragment, left=side == "left"):
            yield Changed(f"{name} of the {side} factor", place, _on(side, change))
    for name, whole in itertools.chain(_of_roles(node), _of_ranges(node), _of_sums(place)):
        yield Changed(name, place, whole)


def _on(side: str, change: Callable[[Fragment], Fragment]) -> Change:
    def changed(node: Mma) -> Mma:
        return replace(node, left=change(node.left)) if side == "left" else replace(node, right=change(node.right))

    return changed


_FragmentChange: TypeAlias = tuple[str, Callable[[Fragment], Fragment]]


def _of_fragment(node: Mma, fragment: Fragment, *, left: bool) -> Iterator[_FragmentChange]:
    x, y = node.lanes
    counts = {
        "lanes of a quad": (x, _QUADS),
        "quads": (y, _GROUP),
        "registers": (REGISTER, 4 if left else 2),
        "blocks": (BLOCK, _blocks(node)[left]),
        "elements of a register": (ELEMENT, node.shape.elements),
    }
    used = {name for subscript in fragment.subscripts for name in variables(subscript)}
    for what, (name, count) in counts.items():
        if name not in used or count < 2:
            continue
        for how, other in _permuted(IndexVariable(name), count, whole=name != y).items():
            # One address of each row is printed of what is loaded by eights, so every lane loads for itself.
            apart = fragment.lay is not Lay.APART and name in (x, ELEMENT, y)
            yield f"{what} {how}", _substituting(name, other, apart=apart)
    if left and y in used:
        another = plus(IndexVariable(y), IndexLiteral(-_GROUP))
        yield "rows of the warp before", _substituting(y, another, apart=False)
    if {x, ELEMENT} <= used:
        turned = {x: IndexVariable(ELEMENT), ELEMENT: modulo(IndexVariable(x), node.shape.elements)}
        yield "lanes and elements exchanged", lambda own: _with(own, turned, apart=True)
    for dimension in range(len(fragment.subscripts)):
        for step in (1, 2, 8):
            yield f"subscript {dimension} moved by {step}", _moved(dimension, step)
    for lay in Lay:
        if lay is not fragment.lay:
            yield f"elements in {lay.value}", partial(replace, lay=lay)
    if len(fragment.subscripts) > 1:
        yield "the last two subscripts exchanged", _exchanged


def _permuted(value: IndexVariable, count: int, *, whole: bool) -> dict[str, IndexExpression]:
    """Other values of the same range; ``whole``: the variable has no further ones."""
    own = value if whole else modulo(value, count)
    rest = IndexLiteral(0) if whole else times(count, quotient(value, count))
    half = count // 2
    found: dict[str, IndexExpression] = {
        "reversed": minus(IndexLiteral(count - 1), own),
        "all the first": IndexLiteral(0),
    }
    if count > 2:  # else all of these are one
        found |= {
            "turned": modulo(plus(own, IndexLiteral(1)), count),
            "halves exchanged": modulo(plus(own, IndexLiteral(half)), count),
            "neighbours exchanged": minus(plus(own, IndexLiteral(1)), times(2, modulo(own, 2))),
            "every second one": plus(times(2, modulo(own, half)), quotient(own, half)),
        }
    return {how: other if whole else plus(rest, other) for how, other in found.items()}


def _substituting(name: str, by: IndexExpression, *, apart: bool) -> Callable[[Fragment], Fragment]:
    return lambda own: _with(own, {name: by}, apart=apart)


def _with(own: Fragment, values: Mapping[str, IndexExpression], *, apart: bool) -> Fragment:
    subscripts = tuple(substituted(subscript, values) for subscript in own.subscripts)
    return replace(own, subscripts=subscripts, lay=Lay.APART if apart else own.lay)


def _moved(dimension: int, step: int) -> Callable[[Fragment], Fragment]:
    def change(own: Fragment) -> Fragment:
        changed = [plus(s, IndexLiteral(step)) if n == dimension else s for n, s in enumerate(own.subscripts)]
        return replace(own, subscripts=tuple(changed))

    return change


def _exchanged(own: Fragment) -> Fragment:
    *others, first, second = own.subscripts
    return replace(own, subscripts=(*others, second, first))


# --- roles, ranges, sums

_Whole: TypeAlias = tuple[str, Change]


def _of_roles(node: Mma) -> Iterator[_Whole]:
    yield "factors exchanged", lambda own: replace(own, left=own.right, right=own.left)
    yield "the left factor twice", lambda own: replace(own, right=own.left)
    yield "threads along x taken for those along y", lambda own: replace(own, lanes=own.lanes[::-1])
    if node.shape.sums == "s32":
        for side in ("left", "right"):
            yield f"the other sign of the {side} factor", _on(side, _other_sign)
    elif (other := _OTHER_TYPES.get(node.shape.operands)) is not None:
        sides = {"left": replace(node.left, type=other), "right": replace(node.right, type=other)}
        yield "another type", partial(replace, shape=replace(node.shape, operands=other), **sides)
    names = ["rows", "pair", "steps", *([] if node.columns is None else ["columns"])]
    for first, second in itertools.combinations(names, 2):
        values = {first: getattr(node, second), second: getattr(node, first)}
        yield f"{first} taken for {second}", partial(replace, **values)


def _other_sign(own: Fragment) -> Fragment:
    return replace(own, type="u8" if own.type == "s8" else "s8")


def _of_ranges(node: Mma) -> Iterator[_Whole]:
    for iterator, count in _counts(node.nest):
        # Others are what one instruction does, and are not printed.
        if not count or iterator not in (node.rows, node.columns):
            continue
        by, role = (2, "rows") if iterator == node.rows else (1, "columns")
        for step, how in ((-by, "fewer"), (by, "more")):
            yield f"{how} {role}", partial(replace, nest=_resized(node.nest, iterator, step))
    if node.limit is not None:
        for step in (-1, 1, node.shape.k):
            changed = plus(node.limit, IndexLiteral(step))
            yield f"a limit moved by {step}", partial(replace, limit=changed)
        yield "no limit", partial(replace, limit=None)


def _resized(nest: LoopTree, iterator: str, by: int) -> Loop | Guard:
    match nest:
        case Guard(condition, then, None):
            return Guard(condition, _resized(then, iterator, by), None) if _has(then, iterator) else nest
        case Loop(upper=IndexLiteral(last)) if nest.iterator == iterator:
            return replace(nest, upper=IndexLiteral(last + by))
        case Loop(body=Loop() | Guard() as body):
            return replace(nest, body=_resized(body, iterator, by))
        case _:
            raise AssertionError(nest)


def _has(nest: LoopTree, iterator: str) -> bool:
    return iterator in dict(_counts(nest))


def _of_sums(place: Place) -> Iterator[_Whole]:
    """Sums in each other's places."""
    node, instance = place.node, _instance(place.node.nest)
    own = {name: count for name, count in _counts(node.nest) if count and name != node.steps}
    for number in sorted(place.sums):
        for name in sorted(variables(instance.arguments[number]) & own.keys()):
            for how, other in _permuted(IndexVariable(name), own[name], whole=True).items():
                if how in ("reversed", "turned", "all the first"):
                    nest = _with_argument(node.nest, number, {name: other})
                    yield f"argument {number}: {_role(node, name)} {how}", partial(replace, nest=nest)


def _role(node: Mma, iterator: str) -> str:
    return next(role for role in ("rows", "pair", "columns") if getattr(node, role) == iterator)


def _instance(nest: LoopTree) -> Instance:
    while isinstance(nest, Loop | Guard):
        nest = nest.body if isinstance(nest, Loop) else nest.then
    assert isinstance(nest, Instance)
    return nest


def _with_argument(nest: Loop | Guard, number: int, values: Mapping[str, IndexExpression]) -> Loop | Guard:
    def inside(tree: LoopTree) -> LoopTree:
        match tree:
            case Loop(body=body):
                return replace(tree, body=inside(body))
            case Guard(then=then):
                return replace(tree, then=inside(then))
            case Instance(arguments=arguments):
                own = (substituted(a, values) if n == number else a for n, a in enumerate(arguments))
                return replace(tree, arguments=tuple(own))
            case _:
                raise AssertionError(tree)

    found = inside(nest)
    assert isinstance(found, Loop | Guard)
    return found
