"""Proof that all threads of a block may compute what the first one did, each for itself, and need not wait for it.

It holds for kernels of one loop over threads, whose statements stand one behind the other.  What the first thread wrote
is a buffer of one element that nothing else writes, and each thread has one of its own now.  Statements that do not
mention the thread, and read what all threads find alike, give all of them the same.  Where a barrier is gone, nothing
that several threads see is touched on both sides, unless both only read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace

from tc.base.errors import VerificationError
from tc.base.frozen import frozen
from tc.language.program.program import reads_in
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Scheduled,
    Sharing,
    leaves,
    variables,
)

_WITHIN = (LoopKind.SEQUENTIAL, LoopKind.REDUCTION, LoopKind.UNROLLED)


def prove_spread(program: LoopProgram, root: LoopTree) -> None:
    """VerificationError unless ``root`` gives what the loops of the program give, which are proven."""
    found = find_wrong_spread(program, root)
    if found is not None:
        raise VerificationError(f"what all threads compute is not proven correct: {found}")


def find_wrong_spread(program: LoopProgram, root: LoopTree) -> str | None:
    """What is wrong first, or None."""
    old, new = _nests(program.root), _nests(root)
    if len(old) != len(new):
        return "other kernels"
    return next((wrong for pair in zip(old, new, strict=True) if (wrong := _find_wrong(program, *pair))), None)


def _nests(root: LoopTree) -> tuple[LoopTree, ...]:
    return root.children if isinstance(root, Block) else (root,)


@frozen
class _Kernel:
    """The loops over blocks and threads without what is inside, the buffers, and the statements one by one."""

    around: tuple[Loop, ...]
    thread: str
    buffers: tuple[Buffer, ...]
    parts: tuple[LoopTree, ...]


def _kernel(tree: LoopTree) -> _Kernel | None:
    """A kernel of one loop over threads, all of which run, with each buffer once; None of others."""
    around: list[Loop] = []
    while isinstance(tree, Loop) and tree.kind.is_mapped:
        around.append(replace(tree, body=Block(())))
        tree = tree.body
    threads = [loop for loop in around if loop.kind is LoopKind.THREAD]
    buffers, parts = list[Buffer](), list[LoopTree]()
    _in_a_row(tree, buffers, parts)
    match threads:
        case [Loop(iterator, IndexLiteral(0), IndexLiteral(), 1)] if len({b.name for b in buffers}) == len(buffers):
            return _Kernel(tuple(around), iterator, tuple(buffers), tuple(parts))
        case _:
            return None


def _in_a_row(tree: LoopTree, buffers: list[Buffer], parts: list[LoopTree]) -> None:
    """What runs once, one behind the other; each buffer is there from where it is allocated on."""
    match tree:
        case Block(children):
            for child in children:
                _in_a_row(child, buffers, parts)
        case Allocation(buffer, body):
            buffers.append(buffer)
            _in_a_row(body, buffers, parts)
        case _:
            parts.append(tree)


def _find_wrong(program: LoopProgram, before: LoopTree, after: LoopTree) -> str | None:
    if before == after:
        return None
    old, new = _kernel(before), _kernel(after)
    if old is None or new is None or old.around != new.around:
        return "other loops"
    matched = list(_matched(old, new))
    if any(kind is None for _, kind in matched):
        return "other statements"
    spread = {number for number, (_, kind) in enumerate(matched) if kind == "spread"}
    touched = [_Touched.of(program, part) for part, _ in matched]
    own = frozenset().union(*(touched[number].written for number in spread))
    return (
        _wrong_buffers(old, new, own)
        or _wrong_writers(touched, spread, own)
        or next((w for n in sorted(spread) if (w := _wrong_part(new, matched, touched, n, own))), None)
        or _wrong_barriers(new, matched, touched, own)
    )


def _matched(old: _Kernel, new: _Kernel) -> Iterator[tuple[LoopTree, str | None]]:
    """What runs now, and how it ran before: the same, in the first thread only, or as a barrier that is gone."""
    left = list(new.parts)
    for part in old.parts:
        if left and left[0] == part:
            yield left.pop(0), "same"
        elif (inside := _only_first(part, old.thread)) and tuple(left[: len(inside)]) == inside:
            yield Block(tuple(left[: len(inside)])), "spread"
            del left[: len(inside)]
        elif isinstance(part, Barrier) and part.pending is None:
            yield part, "gone"
        else:
            yield part, None
    yield from ((part, None) for part in left)


def _only_first(part: LoopTree, thread: str) -> tuple[LoopTree, ...]:
    """What a guard for the first thread has inside, one by one; nothing for all else."""
    first = IndexOperation(IndexOperator.EQUAL, (IndexVariable(thread), IndexLiteral(0)))
    if not isinstance(part, Guard) or part.condition != first or part.otherwise is not None:
        return ()
    buffers, parts = list[Buffer](), list[LoopTree]()
    _in_a_row(part.then, buffers, parts)
    return () if buffers else tuple(parts)


@frozen
class _Touched:
    """The tensors that a part reads and writes."""

    read: frozenset[str]
    written: frozenset[str]

    @staticmethod
    def of(program: LoopProgram, part: LoopTree) -> _Touched:
        bodies = {body.name: body for body in program.bodies}
        read, written = set[str](), set[str]()
        for leaf in leaves(part):
            if isinstance(leaf, Barrier) or not isinstance(leaf, Scheduled):
                continue
            body = bodies[leaf.statement]
            written.add(body.target)
            values = (body.value, *body.subscripts, *body.counts)
            read |= {own.tensor for value in values for own in reads_in(value)}
            read |= {body.target} if body.reduction is not None else set()
        return _Touched(frozenset(read), frozenset(written))

    @property
    def every(self) -> frozenset[str]:
        return self.read | self.written


def _wrong_buffers(old: _Kernel, new: _Kernel, own: frozenset[str]) -> str | None:
    """Buffers are the same, but that each thread has those of its own that are spread."""
    wanted = tuple(replace(b, sharing=Sharing.THREAD) if b.name in own else b for b in old.buffers)
    single = {b.name for b in new.buffers if b.layout.span == 1}
    if wanted != new.buffers or not own <= single:
        return "other buffers"
    return None


def _wrong_writers(touched: Items[_Touched], spread: set[int], own: frozenset[str]) -> str | None:
    others = (part.written & own for number, part in enumerate(touched) if number not in spread)
    return next((f"{min(names)} is written elsewhere" for names in others if names), None)


def _wrong_part(
    new: _Kernel,
    matched: Items[tuple[LoopTree, str | None]],
    touched: Items[_Touched],
    number: int,
    own: frozenset[str],
) -> str | None:
    """Whether one part is not the same in all threads."""
    part = matched[number][0]
    if not _is_uniform(part, new.thread):
        return "a statement depends on its thread"
    sharing = {buffer.name: buffer.sharing for buffer in new.buffers}
    for tensor in sorted(touched[number].read - own):
        writers = [n for n, other in enumerate(touched) if tensor in other.written]
        if tensor in sharing and sharing[tensor] is not Sharing.BLOCK:
            return f"{tensor} is of each thread"
        if not writers:
            continue
        waited = any(kind == "same" and isinstance(m, Barrier) for m, kind in matched[writers[-1] + 1 : number])
        if tensor not in sharing or writers[-1] >= number or not waited:
            return f"{tensor} may be read before or after it is written"
    return None


def _is_uniform(tree: LoopTree, thread: str) -> bool:
    """Whether a tree has plain statements, none of which mentions the thread."""
    match tree:
        case Instance(arguments=arguments):
            return type(tree) is Instance and not any(thread in variables(own) for own in arguments)
        case Block(children):
            return all(_is_uniform(child, thread) for child in children)
        case Loop(_, lower, upper, _, kind, body):
            bound = thread in variables(lower) | variables(upper)
            return kind in _WITHIN and not tree.ranges and not bound and _is_uniform(body, thread)
        case _:
            return False


def _wrong_barriers(
    new: _Kernel, matched: Items[tuple[LoopTree, str | None]], touched: Items[_Touched], own: frozenset[str]
) -> str | None:
    """Whether something that several threads see is written on one side of where a barrier was, and touched on the
    other, up to the barriers that are left.
    """
    private = own | {buffer.name for buffer in new.buffers if buffer.sharing is not Sharing.BLOCK}
    sides: list[list[_Touched]] = [[]]
    for (part, kind), own_touched in zip(matched, touched, strict=True):
        if kind == "gone":
            sides.append([])
        elif isinstance(part, Barrier):
            sides = [[]]
        else:
            for other in (one for side in sides[:-1] for one in side):
                meet = (other.written & own_touched.every) | (other.every & own_touched.written)
                if meet - private:
                    return f"threads do not wait for {min(meet - private)}"
            sides[-1].append(own_touched)
    return None
