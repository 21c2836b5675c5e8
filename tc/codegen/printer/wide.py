"""Prints loops over neighbouring elements with wide accesses: whole pieces of up to 16 bytes from memory and back.

That tensors begin where such accesses may is asked once for all of them; where one does not, the loop runs element by
element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.codegen.index.indices import values_of
from tc.codegen.index.pieces import Piece, Pieces, before
from tc.codegen.printer.context import Context, Scope, TreePrinter
from tc.codegen.printer.printed import ALIGNED, ELSE, Facts, Printed, line, together
from tc.codegen.text.fragment import Fragment, Template, cast, element, filled, named, prefix
from tc.language.program.guards import guarded_reads
from tc.language.program.program import Expression, reads_in
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.ir.loops import Block, Copy, Instance, Loop, LoopKind

# Of the widest access, and of those that store several elements.
_BYTES: Final = 16
_STORED: Final = (4, 8, _BYTES)


@frozen
class _Access:
    """One of memory; ``begin``: of the first iteration, where elements are consecutive and begin at multiples of their
    number; None of others.
    """

    tensor: str
    begin: LinearForm | None
    writes: bool


def wide_loop(printer: TreePrinter, loop: Loop, scope: Scope) -> Printed | None:
    """The loop with wide accesses; None where it has none."""
    context, lanes = printer.context, values_of(loop)
    if loop.kind is not LoopKind.VECTOR or context.dialect.pieces_in is None or len(lanes) < 2 or lanes.step != 1:
        return None
    instances = loop.body.children if isinstance(loop.body, Block) else (loop.body,)
    inner = scope.inside(loop)
    accesses: list[_Access] = []
    for instance in instances:
        if not isinstance(instance, Instance) or isinstance(instance, Copy):
            return None
        accesses += _accesses(context, instance, loop, inner)
    pieces = _pieces(context, accesses)
    if pieces is None:
        return None
    held = Pieces(loop.iterator, pieces)
    printed = printer.loop(loop, scope, printer.tree(loop.body, inner))
    if context.dialect.watches:
        whole = together(_moved(context, scope, piece, lanes, context.dialect.pieces_in, own=False) for piece in pieces)
        whole += printed
    else:
        whole = _in_pieces(printer, loop, scope, held, accesses)
        # Unrolled, what seldom runs would take more registers than what does.
        printed = printed.between([context.dialect.unroll.format(count=1)] if context.dialect.unroll else [])
    return whole.braced(filled("if ({})", _aligned(context, pieces, len(lanes)))) + printed.braced(ELSE)


def packed_stores(printer: TreePrinter, loop: Loop, scope: Scope) -> Printed | None:
    """The unrolled loop with one store of all that it computes for neighbours, where tensors are aligned to that.

    None where there is no such store.  What is copied from an array of the thread is not computed.
    """
    context, lanes, instance = printer.context, values_of(loop), loop.body
    template = context.dialect.store_in_versions
    if loop.kind is not LoopKind.UNROLLED or template is None or len(lanes) < 2 or lanes.step != 1:
        return None
    if not isinstance(instance, Instance) or isinstance(instance, Copy) or scope.pieces is not None:
        return None
    *reads, written = _accesses(context, instance, loop, scope.inside(loop))
    bytes = len(lanes) * context.layouts[written.tensor].type.itemsize
    shared = written.tensor in context.shared
    if written.tensor in context.promoted and not shared:
        return None
    if written.begin is None or bytes not in _STORED or any(read.tensor == written.tensor for read in reads):
        return None
    pointer, type = context.pointer(written.tensor), context.layouts[written.tensor].type
    piece = Piece(written.tensor, written.begin, f"{pointer}_piece")
    assert context.dialect.grids is not None
    printed = line(context.dialect.grids.piece, type=context.storage(type), name=named(piece.array), count=len(lanes))
    held = replace(scope.inside(loop), pieces=Pieces(loop.iterator, (piece,)))
    printed += printer.loop(loop, scope, printer.tree(instance, held))
    known = "true" if shared else ALIGNED
    printed += _moved(context, scope, piece, lanes, {bytes: template}, own=True, back=True, aligned=known)
    facts = Facts() if shared else Facts(aligned=frozenset({(context.names.tensors[written.tensor], bytes)}))
    return printed.braced().with_facts(facts)


def _accesses(context: Context, instance: Instance, loop: Loop, scope: Scope) -> Iterator[_Access]:
    """What an instance reads, and then what it writes; of values on a condition, elements one by one."""
    body = context.body(instance)
    site = context.site(instance, scope)

    def begin(tensor: str, subscripts: tuple[Expression, ...]) -> LinearForm | None:
        form = context.expressions.offset(tensor, subscripts, site)
        return None if form is None else _begin(form, loop)

    plain = body.reduction is None and not is_scatter(body) and not body.counts
    for guarded in guarded_reads(body.value):
        read = guarded.read
        known = not guarded.guards and not any(True for part in read.subscripts for _ in reads_in(part))
        yield _Access(read.tensor, begin(read.tensor, read.subscripts) if known else None, writes=False)
    yield _Access(body.target, begin(body.target, body.subscripts) if plain else None, writes=True)


def _begin(form: LinearForm, loop: Loop) -> LinearForm | None:
    lanes = values_of(loop)
    if form.slope(loop.iterator) != 1 or lanes.start != 0:
        return None
    first = before(form, loop.iterator)
    return first if all(number % len(lanes) == 0 for number in (*first.factors.values(), first.constant)) else None


def _pieces(context: Context, accesses: list[_Access]) -> tuple[Piece, ...] | None:
    """The pieces, each once; None where something that is written has to be written element by element."""
    found: list[Piece] = []
    written = {own.tensor for own in accesses if own.writes} - context.promoted
    for own in accesses:
        if own.tensor in context.promoted:
            continue
        others = [piece for piece in found if piece.tensor == own.tensor]
        if own.tensor in written and (own.begin is None or any(piece.begin != own.begin for piece in others)):
            return None
        if own.begin is None or any(piece.begin == own.begin for piece in others):
            continue
        name = f"{context.pointer(own.tensor)}_piece{len(others) or ''}"
        found.append(Piece(own.tensor, own.begin, name))
    return tuple(found) if written else None


def _in_pieces(printer: TreePrinter, loop: Loop, scope: Scope, held: Pieces, accesses: list[_Access]) -> Printed:
    """What brings pieces in, works on them, and brings back what has changed."""
    context, lanes = printer.context, values_of(loop)
    dialect = context.dialect
    assert dialect.grids is not None
    assert dialect.pieces_in is not None
    assert dialect.pieces_out is not None
    first: dict[str, bool] = {}  # by tensor, whether it is written before it is read
    for own in accesses:
        first.setdefault(own.tensor, own.writes)
    printed = Printed(())
    for piece in held.pieces:
        type = context.storage(context.layouts[piece.tensor].type)
        printed += line(dialect.grids.piece, type=type, name=named(piece.array), count=len(lanes))
    for piece in held.pieces:
        if not first[piece.tensor]:
            printed += _moved(context, scope, piece, lanes, dialect.pieces_in, own=True)
    inner = replace(scope.inside(loop), pieces=held)
    unroll = [dialect.unroll.format(count=len(lanes))] if dialect.unroll else []
    printed += printer.loop(loop, scope, printer.tree(loop.body, inner)).between(unroll)
    written = {own.tensor for own in accesses if own.writes}
    for piece in held.pieces:
        if piece.tensor in written:
            printed += _moved(context, scope, piece, lanes, dialect.pieces_out, own=True, back=True)
    return printed


def _moved(
    context: Context,
    scope: Scope,
    piece: Piece,
    lanes: range,
    templates: Mapping[int, Template],
    *,
    own: bool,
    back: bool = False,
    aligned: str = ALIGNED,
) -> Printed:
    """A piece from memory, or ``back``, in accesses of up to 16 bytes; without an array of its ``own``, only said.

    ``aligned``: the name of what says whether tensors are aligned to pieces, or ``true``.
    """
    size = context.layouts[piece.tensor].type.itemsize
    count = min(len(lanes), _BYTES // size)
    moved = Printed(())
    for begin in range(0, len(lanes), count):
        offset = context.offset(piece.begin.plus(LinearForm(begin)), scope)
        memory = prefix("&", element(str(context.pointer(piece.tensor)), offset))
        array = prefix("&", element(piece.array, Fragment(str(begin)))) if own else memory
        to, source = (memory, array) if back else (array, memory)
        moved += line(templates[count * size], to=to, source=source, bytes=count * size, aligned=aligned)
    return moved


def _aligned(context: Context, pieces: tuple[Piece, ...], lanes: int) -> Fragment:
    """Whether all tensors begin where accesses of pieces may."""
    sizes = {piece.tensor: context.layouts[piece.tensor].type.itemsize for piece in pieces}
    begins = [cast("uintptr_t", context.pointer(tensor)) for tensor in sizes]
    every = filled(" | ".join("{}" for _ in begins), *begins)
    test = filled(
        "({} & {}) == 0" if len(begins) == 1 else "(({}) & {}) == 0", every, _widest(sizes.values(), lanes) - 1
    )
    return replace(test, names=test.names | {"uintptr_t"})


def _widest(sizes: Iterable[int], lanes: int) -> int:
    """The bytes of the widest access of pieces of elements of these sizes."""
    return min(_BYTES, lanes * max(sizes))
