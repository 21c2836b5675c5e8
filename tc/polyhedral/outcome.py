"""What a kernel was really made with: the options of an attempt, with what its loops show of them.

Options that were left open get the value that was chosen, if it is one for the whole kernel.  Limits that were asked
for, and that nothing in the kernel comes under, are 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import field, fields, replace
from typing import Any, Final, assert_never

from tc.base.decision import Decision
from tc.base.dots import Products
from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.language.program.terms import matrix_factors
from tc.polyhedral.attempts import Attempt
from tc.polyhedral.generate.outermost_nests import OutermostNest
from tc.polyhedral.gpu.mapping.split_plan import Plan
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    GroupMma,
    Guard,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Prefetch,
    Sharing,
)
from tc.polyhedral.ir.scop import Promotion, Scop, ScopStatement
from tc.polyhedral.transform.chosen_sizes import RegisterTile, Sizes
from tc.polyhedral.transform.share_loops import DIMENSIONS
from tc.polyhedral.transform.tile import OUTERMOST_FIRST
from tc.targets.options import CpuOptions, Fusion, GpuOptions, Options, TensorCores


@frozen
class Facts:
    """What is known of the loops that were made.

    ``scheduled``: isl's budget sufficed to schedule the program.  ``complete``: every statement has instances, so that
    no loop is missing.  ``nests``: what becomes kernels of a GPU.  ``tiles`` and ``register_tiles``: by statement.
    """

    root: LoopTree
    scop: Scop
    scheduled: bool
    complete: bool = True
    nests: tuple[OutermostNest, ...] = ()
    tiles: Sizes = field(default_factory=dict)
    register_tiles: Mapping[str, RegisterTile] = field(default_factory=dict)


def settled(attempt: Attempt, facts: Facts) -> Attempt:
    """The attempt with the options that its kernel has, and a decision for each that was not asked for so.

    OptionsError for sizes of tiles that no loop has.
    """
    found: dict[str, list[Decision]] = {}
    for decision in _decisions(attempt, facts):
        found.setdefault(decision.option, []).append(decision)
    kept = tuple(decision for decision in attempt.decisions if decision.option not in found)
    options = attempt.options
    for name, decisions in found.items():
        # Several kernels may have one value each, which is none of all of them; and tiles are chosen nest by nest, by
        # rules that are more than sizes.
        if len(decisions) == 1 and not (name in _NEST_BY_NEST and decisions[0].asked is None):
            options = _with_option(options, name, decisions[0].taken)
    added = tuple(decision for decisions in found.values() for decision in decisions)
    return replace(attempt, options=options, decisions=(*kept, *added))


_NEST_BY_NEST: Final = frozenset({"tile", "register_tile"})


def _with_option(options: Options, name: str, value: object) -> Options:
    changed: dict[str, Any] = {name: value}
    if any(field.name == name for field in fields(options.schedule)):
        return replace(options, schedule=replace(options.schedule, **changed))
    return replace(options, **changed)


def _decisions(attempt: Attempt, facts: Facts) -> Iterator[Decision]:
    asked = attempt.asked
    if not facts.scheduled and asked.schedule.fusion is not Fusion.MINIMAL:
        reason = "isl's budget does not suffice to schedule the program, which keeps its order"
        yield Decision("fusion", asked.schedule.fusion, Fusion.MINIMAL, reason)
    yield from _of_tiles(asked, facts)
    match asked:
        case CpuOptions():
            yield from _of_processor(asked, attempt, facts)
        case GpuOptions():
            yield from _of_blocks(asked, facts)
            yield from _of_reductions(asked, attempt.plan)
            yield from _of_memory(asked, attempt, facts)
        case _:
            assert_never(asked)


# What each limit is for, and what there is nothing of where it has no effect.
_UNUSED_ON_PROCESSORS: Final = {
    "register_accumulators": "no target of a reduction is kept in a buffer",
    "packed_operands": "no operand is packed",
    "local_temporaries": "no temporary is kept in a buffer",
    "nontemporal_stores": "no result is written past the caches",
    "block_prefetch": "no block of an argument is prefetched",
}
_VECTORS: Final = frozenset({LoopKind.VECTOR, LoopKind.REDUCTION})


def _of_tiles(asked: Options, facts: Facts) -> Iterator[Decision]:
    """Sizes that were left open.  OptionsError for those of loops with dependences among several statements."""
    tile = asked.schedule.tile
    if tile is None:
        yield from _by_nest("tile", facts.tiles, facts)
        return
    tiled = {place for own in facts.tiles.values() for place, size in enumerate(own) if size}
    taken = tuple(size if place in tiled or size == 1 else 0 for place, size in enumerate(tile))
    if facts.complete and facts.tiles and taken != tile:
        raise OptionsError(
            f"tile {tile} has sizes for loops that carry dependences among several statements, which stay whole; write "
            f"0 for these, as in {taken} ({OUTERMOST_FIRST})"
        )


def _by_nest(option: str, sizes: Sizes, facts: Facts) -> Iterator[Decision]:
    """What was chosen for statements of the program, and which of them, where it is not the same for all."""
    copies = {name for p in facts.scop.promotions for name in (p.loads, p.stores)}
    found: dict[tuple[int, ...], list[str]] = {}
    for name, own in sizes.items():
        if name not in copies:
            found.setdefault(own, []).append(name)
    # Statements may have fewer loops than others beside them.
    for own in [own for own in found if any(own != other == (*own, *other[len(own) :]) for other in found)]:
        del found[own]
    for own, names in found.items():
        reason = "the static rule chooses it"
        yield Decision(option, None, own, reason if len(found) == 1 else f"{reason} for {', '.join(sorted(names))}")


def _of_processor(asked: CpuOptions, attempt: Attempt, facts: Facts) -> Iterator[Decision]:
    """Limits that were asked for, other than those of the defaults, and vectors."""
    nodes = tuple(_nodes(facts.root))
    if asked.vectorize and not any(isinstance(node, Loop) and node.kind in _VECTORS for node in nodes):
        yield Decision("vectorize", True, False, "no innermost loop is parallel or reduces along memory")
    if asked.register_tile is None:
        yield from _by_nest("register_tile", {name: own.sizes for name, own in facts.register_tiles.items()}, facts)
    used = {_limit_of(promotion, facts.scop) for promotion in facts.scop.promotions}
    used |= {"nontemporal_stores" for node in nodes if isinstance(node, Instance) and node.nontemporal}
    used |= {"block_prefetch" for node in nodes if isinstance(node, Prefetch)}
    defaults = CpuOptions()
    for name, reason in _UNUSED_ON_PROCESSORS.items():
        value = getattr(asked, name)
        if name not in used and value not in (0, getattr(defaults, name)) and getattr(attempt.options, name):
            yield Decision(name, value, 0, reason)


def _limit_of(promotion: Promotion, scop: Scop) -> str:
    """Which limit a buffer of a processor's kernel comes under."""
    if promotion.registers:
        return "register_accumulators"
    if promotion.stores is not None:
        return "nontemporal_stores"  # what is stored past the caches is put together in a buffer first
    is_temporary = promotion.tensor in {temporary.name for temporary in scop.temporaries}
    return "local_temporaries" if is_temporary and promotion.loads is None else "packed_operands"


def _nodes(root: LoopTree) -> Iterator[LoopTree]:
    yield root
    match root:
        case Loop(body=body) | Allocation(body=body):
            yield from _nodes(body)
        case Guard(_, then, otherwise):
            yield from _nodes(then)
            if otherwise is not None:
                yield from _nodes(otherwise)
        case Block(children):
            for child in children:
                yield from _nodes(child)
        case Instance() | Barrier() | Prefetch() | Matrices():
            pass
        case _:
            assert_never(root)


def _of_blocks(asked: GpuOptions, facts: Facts) -> Iterator[Decision]:
    """Blocks and threads that are launched, of each kernel that has others than the one before."""
    for name, sizes_of, reason in (
        ("block", _threads, "threads share the points of a tile"),
        ("grid", _blocks, "there are so many tiles"),
    ):
        value = getattr(asked, name)
        sizes = {number: sizes_of(nest) for number, nest in enumerate(facts.nests)}
        several = len(set(sizes.values())) > 1
        if value is not None and any(own == _trimmed(value) for own in sizes.values()):
            continue
        if value is not None and name == "block":
            continue  # of threads that were asked for, as many are launched
        if not several:
            sizes = {number: own for number, own in sizes.items() if number == 0}
        for number, own in sizes.items():
            yield Decision(name, value, own, f"{reason} in kernel {number}" if several else reason)


def _threads(nest: OutermostNest) -> tuple[int, ...]:
    return _launched(nest.sizes.block)


def _blocks(nest: OutermostNest) -> tuple[int, ...]:
    return _launched(nest.sizes.grid)


def _launched(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Along x first, as many as there are names for."""
    return _trimmed(tuple(reversed(sizes)) if len(sizes) <= DIMENSIONS else (math.prod(sizes),))


def _trimmed(sizes: tuple[int, ...]) -> tuple[int, ...]:
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes = sizes[:-1]
    return sizes or (1,)


def _of_reductions(asked: GpuOptions, plan: Plan) -> Iterator[Decision]:
    """How reductions are split that no option says anything of."""
    if asked.split_k_threads is None:
        reason = "so many threads share the reductions along memory" if plan.parts else "no reduction gains by it"
        yield Decision("split_k_threads", None, plan.parts, reason)
    if asked.split_k_blocks is None:
        reason = "there are few results" if plan.blocks > 1 else "there are enough results, or reductions are short"
        yield Decision("split_k_blocks", None, plan.blocks, reason)


def _of_memory(asked: GpuOptions, attempt: Attempt, facts: Facts) -> Iterator[Decision]:
    """Memory that was asked for or left open, and that nothing is in."""
    promotions, options = facts.scop.promotions, attempt.options
    assert isinstance(options, GpuOptions)
    own = [promotion for promotion in promotions if promotion.buffer.sharing is Sharing.THREAD]
    shared = [promotion for promotion in promotions if promotion.buffer.sharing is Sharing.BLOCK]
    if options.shared_memory and not shared:
        yield Decision("shared_memory", asked.shared_memory, 0, "nothing that several threads use has a tile that fits")
    if options.register_accumulators and not any(_is_result(promotion) for promotion in own):
        yield Decision(
            "register_accumulators", asked.register_accumulators, 0, "no thread keeps a result while it reduces"
        )
    if options.register_operands and all(_is_result(promotion) for promotion in own):
        yield Decision("register_operands", asked.register_operands, 0, "no operand is read again by the same thread")
    used = options.tensor_cores is TensorCores.NONE or any(isinstance(node, Matrices) for node in _nodes(facts.root))
    if not used and any(_multiplies_matrices(own, facts.scop.products) for own in facts.scop.statements):
        reason = "no warps run whole blocks of a product"
        yield Decision("tensor_cores", asked.tensor_cores, TensorCores.NONE, reason)
    grouped = any(isinstance(node, GroupMma) for node in _nodes(facts.root))
    streamed = any(isinstance(node, Loop) and node.stream is not None for node in _nodes(facts.root))
    if options.tensor_cores is TensorCores.STREAMS and grouped and not streamed:
        reason = "no loop over tiles of a product copies boxes ahead of it that descriptions of tensors fit"
        yield Decision("tensor_cores", asked.tensor_cores, TensorCores.WARPGROUPS, reason)
    lanes = any(promotion.buffer.sharing is Sharing.LANES for promotion in promotions)
    if asked.shuffles is None and options.shuffles and not lanes:
        yield Decision("shuffles", None, False, "no partial results lie in the lanes of a warp")
    if asked.stages is None and options.stages is None:
        yield from _stages(shared)
    if asked.padding is None:
        yield Decision("padding", None, _padding(shared), "neighbours lie in different banks")


def _multiplies_matrices(statement: ScopStatement, products: Products) -> bool:
    return statement.body.reduction is not None and matrix_factors(statement.body.value, products) is not None


def _is_result(promotion: Promotion) -> bool:
    return promotion.stores is not None or promotion.loads is None


def _padding(shared: Items[Promotion]) -> int:
    """The most elements that were added to a row."""
    most = 0
    for layout in (promotion.buffer.layout for promotion in shared):
        sides = ((step, extent) for step, extent in zip(layout.steps, layout.shape, strict=True) if extent > 1)
        ordered = sorted((step, extent) for step, extent in sides if isinstance(step, int))
        if len(ordered) > 1:
            most = max(most, ordered[1][0] - ordered[0][1])
    return most


def _stages(shared: Items[Promotion]) -> Iterator[Decision]:
    """Tiles of each operand that shared memory holds at a time."""
    slots = {p.buffer.name: 1 if p.rotation is None else p.rotation.slots for p in shared if p.loads is not None}
    if len(set(slots.values())) <= 1:
        reason = "as many find room as hide the copies" if slots else "no operand is copied to shared memory"
        yield Decision("stages", None, max(slots.values(), default=1), reason)
        return
    for name, count in slots.items():
        yield Decision("stages", None, count, f"so many tiles of {name} find room")
