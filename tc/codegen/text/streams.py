"""How languages speak of streams of tiles, and the functions of CUDA C++ that copy boxes of tensors.

(*Parallel Thread Execution ISA*, ``cp.async.bulk.tensor``, ``mbarrier``, ``setmaxnreg``.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tc.base.frozen import frozen
from tc.codegen.text.fragment import Template

# Dimensions of tensors that there are functions for.
_DIMENSIONS: Final = (2, 3, 4, 5)
_COMMENT: Final = """\
// Begins to copy a box of a tensor from these subscripts on, the innermost one first; its bytes arrive at a channel.
"""


@frozen
class StreamWords:
    """How a language speaks of streams.

    ``channels``: the declaration of those of ``{slots}`` slots; ``begin``: the statements that begin them, which
    ``{warps}`` warps leave, ``fence``: what comes behind these where they are ``fenced``, and ``meet``: where all
    threads wait for that.  ``retire``: the statement with which the filler begins; ``give``, ``take``: those by which
    fillers and users have ``{count}`` registers.

    ``wait``: until a phase of the ``{kind}`` channel of a ``{slot}`` has ended, odd or even by ``{parity}``;
    ``expect``: ``{bytes}``; ``leave``: the one behind which a warp needs a slot no more; ``drain``: the one behind
    which matrix instructions have ended but for ``{pending}`` groups.  ``copy``: the one that begins a copy to ``{to}``
    of a ``{box}`` of a tensor with ``{rank}`` dimensions and elements of ``{size}`` bytes, ``{shape}`` and
    ``{strides}``, from the element ``{source}`` on, whose box begins at ``{origin}`` (``{inner}``: the innermost
    subscript first), described by ``{map}``; ``{function}``: the one for so many dimensions.
    """

    channels: Template | None
    begin: Template
    fence: Template | None
    meet: Template
    retire: Template | None
    give: Template | None
    take: Template | None
    wait: Template
    expect: Template
    leave: Template
    drain: Template
    copy: Template


def _used(text: str, *names: str) -> Template:
    return Template(text, frozenset(names))


_TEAM: Final = "team"
EMULATED: Final = StreamWords(
    channels=None,
    begin=_used("tc_begin_channels(team, {slots}, {warps}, {fenced});", "tc_begin_channels", _TEAM),
    fence=None,
    meet=_used("tc_barrier(team, -2);", "tc_barrier", _TEAM),
    retire=_used("tc_retire(team);", "tc_retire", _TEAM),
    give=None,
    take=None,
    wait=_used("tc_await(team, {kind}, {slot}, {parity});", "tc_await", _TEAM),
    expect=_used("tc_expect(team, {slot}, {bytes});", "tc_expect", _TEAM),
    leave=_used("tc_leave(team, {slot});", "tc_leave", _TEAM),
    drain=_used("tc_drain(team, {pending});", "tc_drain", _TEAM),
    copy=_used(
        "tc_copy_box(team, {slot}, {to}, {source}, {size}, {rank}, (const int64_t[]){{{shape}}}, "
        "(const int64_t[]){{{strides}}}, (const int64_t[]){{{box}}}, (const int64_t[]){{{origin}}});",
        "tc_copy_box",
        _TEAM,
    ),
)
OF_CUDA: Final = StreamWords(
    channels=_used("__shared__ __align__(8) uint64_t filled[{slots}], emptied[{slots}];", "uint64_t"),
    begin=_used(
        "for (int n = 0; n < {slots}; n += 1) tc_begin_channel(&filled[n], 1), tc_begin_channel(&emptied[n], {warps});",
        "tc_begin_channel",
    ),
    fence=_used("tc_fence();", "tc_fence"),
    meet=Template("__syncthreads();"),
    retire=None,
    give=_used("tc_give_registers<{count}>();", "tc_give_registers"),
    take=_used("tc_take_registers<{count}>();", "tc_take_registers"),
    wait=_used("tc_await(&{kind}[{slot}], {parity});", "tc_await"),
    expect=_used("tc_expect(&filled[{slot}], {bytes});", "tc_expect"),
    leave=_used("tc_leave(&emptied[{slot}]);", "tc_leave", "emptied"),
    drain=_used("tc_drain<{pending}>();", "tc_drain"),
    copy=Template("{function}({to}, &{map}, &filled[{slot}], {inner});"),
)


def functions() -> Iterator[tuple[str, str]]:
    """The name and the text of each, with the names that it uses."""
    return ((f"tc_copy_box_{rank} < tc_place tc_tensor_map", _text(rank)) for rank in _DIMENSIONS)


def _text(rank: int) -> str:
    places = ", ".join(f"int at{n}" for n in range(rank))
    registers = ", ".join(f"%{n + 2}" for n in range(rank))
    given = ", ".join(f'"r"(at{n})' for n in range(rank))
    instruction = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    parameters = f"void *to, const tc_tensor_map *map, uint64_t *channel, {places}"
    header = f"static __forceinline__ void tc_copy_box_{rank}({parameters})"
    lines = [
        f"{header} {{",
        f'  asm volatile("{instruction} [%0], [%1, {{{registers}}}], [%{rank + 2}];"',
        f'               ::"r"(tc_place(to)), "l"(map), {given}, "r"(tc_place(channel)) : "memory");',
        "}",
    ]
    return _COMMENT + "\n".join(lines)
