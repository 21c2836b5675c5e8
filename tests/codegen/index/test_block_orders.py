"""Blocks of products run in groups of rows, and all of them run."""

from __future__ import annotations

from itertools import product

import pytest

import tc
from tc.base.errors import VerificationError
from tc.polyhedral.ir.launch_order import Digit, LaunchOrder
from tc.polyhedral.proof.printed.verify_block_order import prove_block_order
from tests.translated import translated

FLOATS = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
HALVES = FLOATS.replace("float(", "bfloat16(")
# Six rows of five blocks, in groups of three rows.
ORDER = LaunchOrder(((Digit(1, 3, 1), Digit(15, 2, 3)), (Digit(3, 5, 1),)))


def lines(text: str, m: int, n: int, k: int, target: str) -> list[str]:
    """What says which block a block is."""
    made = translated(tc.define(text).single(), (m, k), (n, k), target=target)
    words = ("const unsigned block ", "const int block_y ", "const int block_x ")
    return [line.strip() for line in made.source.text.splitlines() if line.strip().startswith(words)]


def test_blocks_of_a_large_product_run_in_groups() -> None:
    """16 by 32 tiles of 256 columns and 128 rows: of 132 blocks, groups of 16 rows have 9 columns, and not all 16."""
    assert lines(HALVES, 4096, 4096, 4096, "cuda:sm_90a") == [
        "const unsigned block = 16 * blockIdx.y + blockIdx.x;",
        "const int block_y = block / 256 * 16 + block % 16;",
        "const int block_x = block / 16 % 16;",
    ]
    assert "const unsigned block" in "".join(lines(FLOATS, 8192, 8192, 512, "cuda:sm_80"))


@pytest.mark.parametrize(
    ("text", "sizes", "target"),
    [
        (HALVES, (1024, 1024, 1024), "cuda:sm_90a"),  # all blocks run at the same time
        (HALVES, (4096 + 128, 256, 512), "cuda:sm_90a"),  # a few columns, which all blocks have in any case
        (FLOATS, (4096, 4096, 512), "emulator"),
    ],
    ids=["small", "narrow", "emulator"],
)
def test_others_run_as_the_hardware_numbers_them(text: str, sizes: tuple[int, int, int], target: str) -> None:
    assert not any("unsigned" in line for line in lines(text, *sizes, target))


def test_an_order_has_every_block_once() -> None:
    prove_block_order((7, 6, 5), ORDER)
    assert {ORDER.iterations(number) for number in range(30)} == set(product(range(6), range(5)))


@pytest.mark.parametrize(
    "wrong",
    [
        LaunchOrder(((Digit(1, 3, 1), Digit(15, 2, 2)), (Digit(3, 5, 1),))),  # rows twice
        LaunchOrder(((Digit(1, 3, 1), Digit(15, 2, 3)), (Digit(2, 5, 1),))),  # numbers of both
        LaunchOrder(((Digit(1, 3, 1),), (Digit(3, 5, 1),))),  # rows left out
        LaunchOrder(((Digit(1, 3, 1), Digit(15, 3, 3)), (Digit(3, 5, 1),))),  # rows that are not there
        LaunchOrder(((Digit(1, 2, 1), Digit(10, 3, 2)), (Digit(2, 4, 1),))),  # columns left out
    ],
    ids=["rows twice", "numbers of both", "rows left out", "rows beyond", "columns left out"],
)
def test_wrong_orders_are_refused(wrong: LaunchOrder) -> None:
    with pytest.raises(
        VerificationError, match=r"the order of blocks is not proven correct: some iteration of \(6, 5\)"
    ):
        prove_block_order((7, 6, 5), wrong)
