"""Streams of tiles: on the emulator against the oracle, as NVRTC compiles them, and with mistakes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.polyhedral.execution.streamed import stream_in
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.polyhedral.gpu.tensor.stream_tiles import stream_tiles
from tc.polyhedral.ir.loops import Allocation, Block, Loop, LoopTree
from tc.polyhedral.ir.streams import Await, BoxCopy, Channel, Drain, Expect, Leave, Stream, Sum
from tc.prediction.predict import predict
from tc.targets.devices import DEVICES
from tests.mutants.judge import Given, Verdict, judge
from tests.mutants.mistakes import Mistake
from tests.polyhedral.gpu.tensor.products import LAYOUTS, agree, operands, product
from tests.translated import translated
from tests.turns import every, every_row, one_in

OPTIONS = tc.GpuOptions(
    tc.ScheduleOptions(tile=(64, 64, 64)), stages=2, shared_memory=64 << 10, tensor_cores=tc.TensorCores.STREAMS
)


def stream_of(kernel: Kernel) -> Stream | None:
    """That of its loops."""
    assert kernel.compilation is not None
    found = stream_in(kernel.compilation.mapped.loops.root)
    return None if found is None else found.stream


@pytest.mark.parametrize(
    ("layout", "sizes", "stages", "type"),
    every_row(
        3,
        [
            ("AB'", (70, 72, 208), 2, "float16"),  # borders of rows, of columns and of steps
            ("AB", (64, 136, 256), 3, "bfloat16"),
            ("A'B", (72, 64, 80), 2, "float16"),
            ("A'B'", (64, 64, 320), 4, "bfloat16"),
        ],
    ),
)
def test_streams_agree_with_the_oracle(layout: str, sizes: tuple[int, int, int], stages: int, type: str) -> None:
    f, arrays = product(layout, type), operands(layout, type, *sizes)
    kernel = f.compile(*arrays, target="emulator", options=replace(OPTIONS, stages=stages))
    stream = stream_of(kernel)
    assert stream is not None
    assert stream.slots == stages
    for _ in range(3):  # copies end at once, or late
        agree(f, arrays, kernel)


@pytest.mark.parametrize(("layout", "sizes"), [("AB'", (64, 64, 72)), ("AB", (64, 70, 128))], ids=["steps", "strides"])
def test_what_no_description_fits_is_copied_by_threads(layout: str, sizes: tuple[int, int, int]) -> None:
    """Rows that are no multiples of 16 bytes, and steps that are no whole instructions."""
    made = translated(
        product(layout, "float16"),
        *(own.shape for own in operands(layout, "float16", *sizes)),
        target="cuda:sm_90a",
        options=OPTIONS,
    )
    assert stream_in(made.mapped.loops.root) is None


def test_a_large_product_is_a_stream_without_spills() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    options = tc.GpuOptions(tensor_cores=tc.TensorCores.STREAMS)
    kernel = product("AB", "bfloat16").compile((4096, 4096), (4096, 4096), target="cuda:sm_90a", options=options)
    for word in ("cp.async.bulk.tensor.2d", "mbarrier.try_wait.parity", "setmaxnreg.inc", "wgmma.mma_async"):
        assert word in kernel.source
    (grid,) = kernel.resources.grids
    assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)
    assert grid.block == (4, 8, 12)


def test_streams_are_predicted_to_be_quicker() -> None:
    def seconds(cores: tc.TensorCores) -> float:
        made = translated(
            product("AB", "bfloat16"),
            (4096, 4096),
            (4096, 4096),
            target="cuda:sm_90a",
            options=tc.GpuOptions(tensor_cores=cores),
        )
        return predict(count_kernels(made.mapped.loops), DEVICES["H200"]).seconds

    assert seconds(tc.TensorCores.STREAMS) < 0.95 * seconds(tc.TensorCores.WARPGROUPS)


Change = Callable[[Stream], Stream]


def mistake(name: str, change: Change) -> Mistake:
    """The stream of a program with something else in it."""

    def changed(tree: LoopTree) -> LoopTree:
        match tree:
            case Block(children):
                return Block(tuple(map(changed, children)))
            case Loop(stream=Stream() as stream):
                return replace(tree, stream=change(stream))
            case Loop() | Allocation():
                return replace(tree, body=changed(tree.body))
            case _:
                return tree

    @contextmanager
    def made() -> Iterator[None]:
        with patch("tc.polyhedral.grid_passes.stream_tiles", lambda *given: changed(stream_tiles(*given))):
            yield

    return Mistake(name, made)


def filling(change: Callable[[Await | Expect | BoxCopy], Await | Expect | BoxCopy | None]) -> Change:
    def of(stream: Stream) -> Stream:
        return replace(stream, filler=tuple(own for step in stream.filler if (own := change(step)) is not None))

    return of


def boxes(change: Callable[[BoxCopy], BoxCopy]) -> Change:
    return filling(lambda own: change(own) if isinstance(own, BoxCopy) else own)


def moved(own: Sum, by: int) -> Sum:
    return replace(own, constant=own.constant + by)


EMPTIED, FILLED = Await(Channel.EMPTIED, before=True), Await(Channel.FILLED)
CHANGES: dict[str, Change] = {
    "slots are filled without a wait": lambda own: replace(own, filler=own.filler[1:]),
    "slots are used without a wait": lambda own: replace(own, users=own.users[1:]),
    "slots are filled at the other parity": lambda own: replace(
        own, filler=(replace(EMPTIED, before=False), *own.filler[1:])
    ),
    "slots are used at the other parity": lambda own: replace(
        own, users=(replace(FILLED, before=True), *own.users[1:])
    ),
    "another slot is awaited when it is filled": lambda own: replace(
        own, filler=(replace(EMPTIED, ahead=1), *own.filler[1:])
    ),
    "another slot is awaited when it is used": lambda own: replace(
        own, users=(replace(FILLED, ahead=1), *own.users[1:])
    ),
    "slots are filled before the wait": lambda own: replace(own, filler=(*own.filler[1:], own.filler[0])),
    "slots are used before the wait": lambda own: replace(own, users=(own.users[1], own.users[0], *own.users[2:])),
    "the filled channel is awaited when it is filled": lambda own: replace(own, filler=(FILLED, *own.filler[1:])),
    "no warp leaves slots": lambda own: replace(own, users=own.users[:-1]),
    "slots are left too early": lambda own: replace(own, users=(*own.users[:-1], Leave(0))),
    "another slot is left": lambda own: replace(own, users=(*own.users[:-1], Leave(-2))),
    "products are under way when slots are left": lambda own: replace(
        own, users=(*own.users[:2], Drain(3), own.users[3])
    ),
    "half of the bytes are expected": filling(
        lambda own: replace(own, bytes=own.bytes // 2) if isinstance(own, Expect) else own
    ),
    "more bytes are expected": filling(
        lambda own: replace(own, bytes=own.bytes + 16) if isinstance(own, Expect) else own
    ),
    "no bytes are expected": filling(lambda own: None if isinstance(own, Expect) else own),
    "bytes are expected of another slot": filling(
        lambda own: replace(own, ahead=1) if isinstance(own, Expect) else own
    ),
    "boxes go to another slot": boxes(lambda own: replace(own, ahead=1)),
    "boxes arrive at another slot": boxes(lambda own: replace(own, arrives=1)),
    "boxes of the next rows": boxes(lambda own: replace(own, origin=(moved(own.origin[0], 1), *own.origin[1:]))),
    "boxes of the next columns": boxes(lambda own: replace(own, origin=(*own.origin[:-1], moved(own.origin[-1], 8)))),
    "the same boxes for all tiles": boxes(lambda own: replace(own, origin=tuple(Sum(0) for _ in own.origin))),
    "boxes of fewer rows": lambda own: replace(
        boxes(lambda box: replace(box, box=(box.box[0] // 2, *box.box[1:])))(own),
        filler=tuple(
            replace(step, bytes=step.bytes // 2)
            if isinstance(step, Expect)
            else replace(step, box=(step.box[0] // 2, *step.box[1:]))
            if isinstance(step, BoxCopy)
            else step
            for step in own.filler
        ),
    ),
    "one box is left out": lambda own: replace(own, filler=own.filler[:-1]),
    "boxes exchanged": lambda own: replace(
        own,
        filler=(
            *own.filler[:2],
            *(replace(one, buffer=other.buffer) for one, other in zip(own.boxes, reversed(own.boxes), strict=True)),
        ),
    ),
    "one tile fewer": lambda own: replace(own, tiles=own.tiles - 1),
    "a slot is filled when one warp has left it": lambda own: replace(own, warps=1),
    "more warps leave": lambda own: replace(own, warps=own.warps + 1),
    "more slots than there are": lambda own: replace(own, slots=own.slots + 1),
    "channels without a fence": lambda own: replace(own, fenced=False),
    "sums that are not awaited": lambda own: replace(own, drained=False),
}
# What shows in no order in which the emulator runs threads: a loop of fewer tiles is printed as it is.
UNSEEN = ("one tile fewer",)


@one_in(4)
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
@pytest.mark.parametrize("name", CHANGES)
def test_mistakes_are_refused_and_seen(name: str, layout: str) -> None:
    a, b = operands(layout, "float16", 64, 64, 320)
    first, second, term = LAYOUTS[layout]
    text = f"def f(float16{first}, float16{second}) -> (C) {{ C(m,n) +=! {term} }}"
    verdict = judge(text, "f", Given({"A": a, "B": b}), OPTIONS, mistake(name, CHANGES[name]))
    assert verdict == Verdict(refused=True, wrong=name not in UNSEEN)
