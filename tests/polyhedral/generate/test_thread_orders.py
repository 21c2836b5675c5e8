"""The threads of a warp that multiplies matrices lie in a rectangle, and each has iterations of its own."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from unittest.mock import patch

import pytest

import tc
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.launch_order import Digit, LaunchOrder
from tc.polyhedral.ir.loops import IndexLiteral, Instance, Loop, LoopKind
from tc.polyhedral.proof.printed.verify_thread_order import find_misplaced_thread
from tests.translated import translated

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
WARP = 32
SOURCE = re.compile(r"const int thread_([xy]) = (.*);")
LEAF = Instance("S0", ())


def orders(block: tuple[int, int], tile: tuple[int, int, int] = (64, 64, 8)) -> list[tuple[int, int]]:
    """The iterations (y, x) of all threads of a block, as the text has them."""
    options = tc.GpuOptions(tc.ScheduleOptions(tile=tile), block=block)
    text = translated(MM, (128, 64), (64, 128), target="cuda:sm_90", options=options).source.text
    found = {name: value.replace("/", "//") for name, value in SOURCE.findall(text)}

    def value(name: str, number: int) -> int:
        place = {"threadIdx.x": number % block[0], "threadIdx.y": number // block[0], "thread": number}
        formula = re.sub(r"threadIdx\.[xy]|thread", lambda own: str(place[own[0]]), found[name])
        return int(eval(formula))

    return [(value("y", number), value("x", number)) for number in range(block[0] * block[1])]


@pytest.mark.parametrize("block", [(16, 16), (8, 8), (32, 4), (16, 8)])
def test_a_warp_is_a_rectangle_in_which_neighbours_share_operands(block: tuple[int, int]) -> None:
    found = orders(block)
    assert sorted(found) == list(itertools.product(range(block[1]), range(block[0])))
    for begin in range(0, len(found), WARP):
        warp = found[begin : begin + WARP]
        assert (len({y for y, _ in warp}), len({x for _, x in warp})) == (4, 8)
        assert all(warp[n][0] == warp[n ^ 1][0] and warp[n][1] == warp[n ^ 2][1] for n in range(WARP))


def test_other_blocks_are_as_the_hardware_numbers_them() -> None:
    assert orders((20, 8), (40, 40, 8)) == list(itertools.product(range(8), range(20)))


NEST = Loop("y", IndexLiteral(0), IndexLiteral(7), 1, LoopKind.THREAD, LEAF)
ORDER = LaunchOrder(((Digit(2, 2, 1), Digit(16, 4, 2)), (Digit(1, 2, 1), Digit(4, 4, 2))))


def test_a_right_order_is_proven() -> None:
    assert find_misplaced_thread(NEST, (8, 8), ORDER) is None


def mutants(order: LaunchOrder) -> list[LaunchOrder]:
    """One digit is of another size, or gone, and some thread has another iteration then."""
    found: list[LaunchOrder] = []
    for loop, digits in enumerate(order.digits):
        for place, digit in enumerate(digits):
            for other in (
                replace(digit, below=2 * digit.below),
                replace(digit, count=digit.count + 1),
                replace(digit, count=digit.count - 1),
                replace(digit, factor=digit.factor + 1),
                replace(digit, factor=0),
            ):
                changed = (*digits[:place], other, *digits[place + 1 :])
                found.append(LaunchOrder((*order.digits[:loop], changed, *order.digits[loop + 1 :])))
    return [own for own in found if any(own.iterations(n) != order.iterations(n) for n in range(64))]


def test_every_mutant_is_refused() -> None:
    assert len(mutants(ORDER)) > 15
    for order in mutants(ORDER):
        wrong = find_misplaced_thread(NEST, (8, 8), order)
        assert wrong is not None
        assert wrong.violation is Violation.UNLAUNCHED


def test_lanes_that_exchange_values_stay_where_they_are() -> None:
    lanes = replace(NEST, body=Loop("l", IndexLiteral(0), IndexLiteral(31), 1, LoopKind.LANES, LEAF))
    wrong = find_misplaced_thread(lanes, (8, 8), ORDER)
    assert wrong is not None
    assert wrong.violation is Violation.ALONE


def test_a_wrong_order_is_never_printed() -> None:
    wrong = LaunchOrder(((Digit(1, 8, 1),), (Digit(1, 8, 1),)))
    with (
        patch("tc.codegen.printer.launches.thread_order", return_value=wrong),
        pytest.raises(tc.VerificationError, match=r"^the order of threads is not proven correct: .*thread \(0, 1\)$"),
    ):
        orders((8, 8))
