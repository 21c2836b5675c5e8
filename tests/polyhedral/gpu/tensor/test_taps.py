"""Convolutions as sums of products of matrices: operands of all taps in shared memory, and short lines of images."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.polyhedral.ir.loop_text import loop_text
from tests.polyhedral.gpu.tensor.products import TYPES, agree, matrices, multiplies
from tests.translated import translated
from tests.turns import every, one_in

PLANES = "I(n,c,{s}*h+{d}*i,{s}*v+{d}*j) * W(f,c,i,j)"


def convolution(type: str, stride: int = 1, dilation: int = 1) -> tc.Comprehension:
    """Planes of an image; filters without padding."""
    term = PLANES.format(s=stride, d=dilation)
    text = f"def f({type}(N,C,H,W) I, {type}(F,C,KH,KW) W) -> (O) {{ O(n,f,h,v) +=! {term} }}"
    return tc.define(text.replace("1*", "")).single()


def arrays(type: str, *shapes: tuple[int, ...]) -> tuple[npt.NDArray[np.generic], ...]:
    random = np.random.default_rng(5)
    return tuple((random.standard_normal(shape) / 2).astype(TYPES[type]) for shape in shapes)


# Images, filters, stride, dilation: lines of 14, 7, 9 and 68 points, an odd number of taps or one, channels and filters
# that no tile divides.
CASES = (
    ((1, 32, 16, 16), (32, 32, 3, 3), 1, 1),
    ((2, 16, 9, 9), (48, 16, 3, 3), 1, 1),
    ((1, 40, 9, 15), (33, 40, 3, 2), 1, 1),
    ((1, 17, 12, 21), (16, 17, 1, 1), 1, 1),
    ((1, 16, 5, 70), (16, 16, 3, 3), 1, 1),
    ((1, 32, 21, 25), (32, 32, 3, 3), 2, 1),
    ((1, 16, 11, 13), (24, 16, 3, 3), 1, 2),
    ((3, 16, 5, 9), (16, 16, 2, 3), 1, 1),
    ((1, 16, 13, 13), (16, 16, 3, 3), 2, 1),
)


@one_in(3)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("image", "filters", "stride", "dilation"), CASES)
def test_convolutions_agree_with_the_oracle(
    image: tuple[int, ...], filters: tuple[int, ...], stride: int, dilation: int, type: str
) -> None:
    f, given = convolution(type, stride, dilation), arrays(type, image, filters)
    kernel = f.compile(*given, target="emulator")
    assert multiplies(kernel)
    agree(f, given, kernel)


@one_in(2)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("image", "filters", "stride"),
    [
        ((1, 10, 12, 32), (32, 3, 3, 32), 1),
        ((2, 13, 16, 16), (24, 3, 3, 16), 1),
        ((1, 9, 15, 40), (16, 3, 2, 40), 1),  # fewer lines than a tile has
        ((1, 21, 25, 32), (32, 3, 3, 32), 2),
        ((1, 6, 70, 16), (16, 3, 3, 16), 1),  # whole lines
        ((20, 5, 8, 16), (16, 2, 2, 16), 1),  # lines of seven points, of which there are four
        ((32, 4, 11, 16), (16, 3, 3, 16), 1),  # rows are images, for there are two lines
        ((1, 34, 34, 64), (64, 3, 3, 64), 1),
        ((2, 9, 9, 32), (24, 3, 3, 32), 1),  # lines of seven points
    ],
)
def test_images_with_channels_last_have_rows_in_several_lines(
    image: tuple[int, ...], filters: tuple[int, ...], stride: int, type: str
) -> None:
    moved = "" if stride == 1 else f"{stride}*"
    f = tc.define(
        f"def f({type}(N,H,W,C) I, {type}(F,KH,KW,C) K) -> (O) {{ "
        f"O(n,h,v,f) +=! I(n,{moved}h+i,{moved}v+j,c) * K(f,i,j,c) }}"
    ).single()
    given = arrays(type, image, filters)
    kernel = f.compile(*given, target="emulator")
    assert multiplies(kernel)
    agree(f, given, kernel)


@pytest.mark.parametrize("shapes", [((1, 16, 16, 256), (256, 3, 3, 256)), ((1, 9, 9, 512), (512, 3, 3, 512))])
def test_sums_of_one_image_are_split_between_loops(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Where a part of the sums began within the channels of a tap, operands would lie in no box."""
    text = """def f(bfloat16(N,H,W,C) I, bfloat16(F,KH,KW,C) K) -> (O) {
        O(n,h,v,f) +=! I(n,h+i,v+j,c) * K(f,i,j,c) }"""
    made = translated(tc.define(text).single(), *shapes, target="cuda:sm_90")
    assert "mma.sync" in made.source.text
    (parts,) = (own.taken for own in made.decisions if own.option == "split_k_blocks")
    assert parts == 3


@pytest.mark.parametrize("block", [(4, 8, 4), (4, 8, 2), (4, 16, 2)])
def test_tiles_and_blocks_of_lines_may_be_asked_for(block: tuple[int, ...]) -> None:
    text = """def f(float16(N,H,W,C) I, float16(F,KH,KW,C) K) -> (O) {
        O(n,h,v,f) +=! I(n,h+i,v+j,c) * K(f,i,j,c) }"""
    f, given = tc.define(text).single(), arrays("float16", (2, 11, 14, 16), (16, 2, 3, 16))
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(1, 8, 8, 16, 2, 3, 16)), block=block)
    kernel = f.compile(*given, target="emulator", options=options)
    assert multiplies(kernel) is (block[1] == 8)
    agree(f, given, kernel)
    planes, arrays_of_planes = convolution("float16"), arrays("float16", (2, 16, 10, 13), (32, 16, 2, 3))
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(1, 32, 4, 8, 16, 2, 3)), block=block)
    kernel = planes.compile(*arrays_of_planes, target="emulator", options=options)
    assert multiplies(kernel)
    agree(planes, arrays_of_planes, kernel)


FURTHER = {
    "one dimension": (
        "bfloat16(N,C,L) I, bfloat16(F,C,K) W",
        "O(n,f,l) +=! I(n,c,l+k) * W(f,c,k)",
        ((2, 17, 30), (24, 17, 5)),
    ),
    "three dimensions": (
        "float16(N,C,D,H,W) I, float16(F,C,KD,KH,KW) W",
        "O(n,f,d,h,v) +=! I(n,c,d+k,h+i,v+j) * W(f,c,k,i,j)",
        ((1, 16, 4, 6, 11), (16, 16, 2, 2, 3)),
    ),
    "groups": (
        "float16(N,G,C,H,W) I, float16(G,F,C,KH,KW) W",
        "O(n,g,f,h,v) +=! I(n,g,c,h+i,v+j) * W(g,f,c,i,j)",
        ((1, 2, 16, 8, 10), (2, 20, 16, 3, 3)),
    ),
    "channels last": (
        "float16(N,H,W,C) I, float16(F,KH,KW,C) W",
        "O(n,h,v,f) +=! I(n,h+i,v+j,c) * W(f,i,j,c)",
        ((1, 6, 20, 24), (18, 3, 3, 24)),
    ),
    "bytes": (
        "int8(N,C,H,W) I, uint8(F,C,KH,KW) W",
        "O(n,f,h,v) +=! int32(I(n,c,h+i,v+j)) * int32(W(f,c,i,j))",
        ((1, 36, 9, 12), (18, 36, 3, 3)),
    ),
}


KINDS: dict[str, npt.DTypeLike] = {**TYPES, "int32": np.int32, "float": np.float32}
# Ranges that begin elsewhere, subscripts that decrease, elements that data choose.
UNUSUAL = {
    "late taps": (
        "float16(N,C,H,W) I, float16(F,C,KH,KW) K",
        "O(n,f,h,v) +=! I(n,c,h+i,v+j) * K(f,c,i,j) where i in 2:4",
        ((1, 16, 10, 12), (16, 16, 4, 3)),
    ),
    "late lines": (
        "float16(N,C,H,W) I, float16(F,C,KH,KW) K, float(N,F,H,W) Z",
        "O(n,f,h,v) = Z(n,f,h,v)  O(n,f,h,v) += I(n,c,h+i,v+j) * K(f,c,i,j) where h in 2:8, v in 0:10",
        ((1, 16, 12, 12), (16, 16, 3, 3), (1, 16, 12, 12)),
    ),
    "backwards": (
        "float16(N,C,H,W) I, float16(F,C,KH,KW) K",
        "O(n,f,h,v) +=! I(n,c,h+i,11-v-j) * K(f,c,i,j) where h in 0:8, v in 0:7",
        ((1, 16, 10, 12), (16, 16, 3, 3)),
    ),
    "backwards in long lines": (
        "float16(N,C,H,W) I, float16(F,C,KH,KW) K",
        "O(n,f,h,v) +=! I(n,c,h+i,11-v-j) * K(f,c,i,j) where h in 0:8, v in 0:10",
        ((1, 16, 10, 12), (16, 16, 3, 3)),
    ),
    "halves of subscripts": (
        "float16(N,C,H,W) I, float16(F,C,KH,KW) K",
        "O(n,f,h,v) +=! I(n,c,h+i,(v+2-j)/2) * K(f,c,i,j) where h in 0:8, v in 0:7, (v+2-j) % 2 == 0",
        ((1, 16, 10, 12), (16, 16, 3, 3)),
    ),
    "scatter": (
        "float16(N,C) A, float16(C,M) B, int32(N) I, float(P,M) Z",
        "O(p,m) = Z(p,m)  O(I(n),m) += float(A(n,c) * B(c,m))",
        ((32, 32), (32, 32), (32,), (40, 32)),
    ),
    "gather": (
        "float16(N,C) A, float16(P,M) B, int32(C) I",
        "O(n,m) +=! A(n,c) * B(I(c),m)",
        ((32, 32), (40, 32), (32,)),
    ),
    "two loops": (
        "float16(N,A,B) X, float16(A,B,M) Y",
        "O(n,m) +=! X(n,a,b) * Y(a,b,m)",
        ((32, 3, 24), (3, 24, 16)),
    ),
    "steps of a scan": (
        "float16(C,W) I, float16(T,F,C,K) K, float(T,F,V) Z",
        "O(t,f,v) = Z(t,f,v)  for t in 1:T { O(t,f,v) += I(c,v+k) * K(t,f,c,k) }",
        ((16, 12), (3, 16, 16, 3), (3, 16, 10)),
    ),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_sums_agree_with_the_oracle(name: str) -> None:
    arguments, body, shapes = UNUSUAL[name]
    f = tc.define(f"def f({arguments}) -> (O) {{ {body} }}").single()
    random = np.random.default_rng(9)
    types = re.findall(r"(\w+)\(", arguments)
    given = tuple(
        np.asarray(random.integers(*((0, 32) if type == "int32" else (-2, 3)), shape)).astype(KINDS[type])
        for type, shape in zip(types, shapes, strict=True)
    )
    agree(f, given, f.compile(*given, target="emulator"))


@pytest.mark.parametrize("name", every(2, FURTHER))
def test_other_convolutions_agree_with_the_oracle(name: str) -> None:
    arguments, body, shapes = FURTHER[name]
    f = tc.define(f"def f({arguments}) -> (O) {{ {body} }}").single()
    random = np.random.default_rng(7)
    types = re.findall(r"(\w+)\(", arguments)
    given = tuple(
        random.integers(0, 100, shape).astype(type)
        if "int" in type
        else (random.standard_normal(shape) / 2).astype(TYPES[type])
        for type, shape in zip(types, shapes, strict=True)
    )
    kernel = f.compile(*given, target="emulator")
    assert multiplies(kernel)
    agree(f, given, kernel)


def test_operands_of_all_taps_lie_in_shared_memory_at_a_time() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = convolution("bfloat16").compile((32, 256, 16, 16), (256, 256, 3, 3), target="cuda:sm_90")
    assert multiplies(kernel)
    assert kernel.compilation is not None
    shared = re.findall(r"shared\d_([IW])\[(.*)\], one for", loop_text(kernel.compilation.mapped.loops.root))
    # Three stages of 14 lines of eight points with their borders, and of 64 filters; 16 channels of both.
    assert shared == [("I", "3, 1, 16, 16, 10"), ("W", "3, 64, 16, 3, 3")]
    for grid in kernel.resources.grids:
        assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("architecture", every(2, ("sm_80", "sm_86", "sm_90a", "sm_100a")))
def test_lanes_load_fragments_of_convolutions_by_rows(architecture: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = convolution("float16").compile((8, 64, 30, 30), (64, 64, 3, 3), target=f"cuda:{architecture}")
    assert "mma.sync.aligned.m16n8k16" in kernel.source
    assert kernel.compilation is not None
    (made,) = matrices(kernel.compilation.mapped.loops.root)
    assert {made.left.lay.value, made.right.lay.value} == {"rows"}


def test_tiles_of_one_tap_are_brought_where_all_have_no_room() -> None:
    f, given = convolution("float16"), arrays("float16", (1, 16, 11, 74), (64, 16, 11, 11))
    kernel = f.compile(*given, target="emulator", options=tc.GpuOptions(split_k_blocks=1))
    assert multiplies(kernel)
    agree(f, given, kernel)
