"""The register tile that the cost model chooses: what must hold whichever it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pytest

from tc.language.isl.session import isl_context
from tc.language.program.program import Read, iterators_in, walk
from tc.polyhedral.cpu.microkernel import MicroKernel, Surroundings, choose_microkernel
from tc.polyhedral.cpu.tile_cost import vector_widths
from tc.polyhedral.cpu.tile_facts import tile_costs
from tc.polyhedral.ir.scop import Scop, ScopStatement, build_scop, layouts_of
from tc.targets.machine import VectorUnit
from tests.polyhedral.support import MATMUL, TRANSPOSED, specialized

Shapes = tuple[tuple[int, ...], ...]
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})

UNITS = (VectorUnit(64, 32), VectorUnit(32, 16), VectorUnit(16, 32), VectorUnit(16, 16))
BATCHED = "def bmm(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,m,n) +=! X(b,m,k) * Y(b,k,n) }"
CONVOLUTION = """
def conv(float(N,C,H,W) X, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! X(n,c,h+p,w+q) * K(f,c,p,q) }
"""
SAME = """
def same(float(N,C,H,W) X, float(F,C,3,3) K) -> (O) {
    O(n,f,h,w) +=! X(n,c,h+p-1,w+q-1) * K(f,c,p,q) where h in 0:H, w in 0:W, h+p-1 in 0:H, w+q-1 in 0:W
}"""
HALVED = """
def halved(float(N,C,H,W) X, float(C,3,3) K) -> (O) {
    O(n,c,h,w) +=! X(n,c,2*h+p-1,2*w+q-1) * K(c,p,q) where h in 0:H/2, w in 0:W/2, 2*h+p-1 in 0:H, 2*w+q-1 in 0:W
}"""
PHASES = """
def phases(float(N,C,H,W) X, float(C,F,4,4) K) -> (O) {
    O(n,f,2*u+r,2*v+s) +=! X(n,c,u-p+1,v-q+1) * K(c,f,2*p+r-1,2*q+s-1)
        where u in 0:H, v in 0:W, r in 0:2, s in 0:2, p in 0:3, q in 0:3, u-p+1 in 0:H, v-q+1 in 0:W,
              2*p+r-1 in 0:4, 2*q+s-1 in 0:4
}"""
DOUBLE = MATMUL.replace("float", "double")
PRODUCTS: tuple[tuple[str, Shapes], ...] = (
    (MATMUL, ((128, 256), (256, 512))),
    (MATMUL, ((7, 129), (129, 50))),
    (DOUBLE, ((65, 33), (33, 100))),
    (TRANSPOSED, ((128, 256), (512, 256))),
    (TRANSPOSED, ((26, 72), (26, 72))),
    (BATCHED, ((4, 30, 40), (4, 40, 50))),
    (CONVOLUTION, ((2, 8, 20, 20), (16, 8, 3, 3))),
)
CASES = [pytest.param(text, shapes, unit) for text, shapes in PRODUCTS for unit in UNITS]


def reduction(scop: Scop) -> ScopStatement:
    return next(statement for statement in scop.statements if statement.accumulates)


def chosen(
    text: str,
    shapes: Shapes,
    unit: VectorUnit = UNITS[0],
    *,
    packs: bool = True,
    fixed: Mapping[str, int] = NOTHING,
    within: Mapping[str, int] = NOTHING,
) -> MicroKernel | None:
    """The tile of the one reduction of a program."""
    with isl_context() as context:
        scop = build_scop(specialized(text, shapes), context)
        around = Surroundings(tuple(fixed.items()), within=tuple(within.items()))
        return choose_microkernel(reduction(scop), layouts_of(scop), unit, packs=packs, around=around)


def found(
    text: str, shapes: Shapes, unit: VectorUnit, fixed: Mapping[str, int] = NOTHING, within: Mapping[str, int] = NOTHING
) -> MicroKernel:
    tile = chosen(text, shapes, unit, fixed=fixed, within=within)
    assert tile is not None
    return tile


def rows(tile: MicroKernel) -> dict[str, int]:
    return {name: size for name, size in tile.sizes.items() if name != tile.lane and size > 1}


@pytest.mark.parametrize(("text", "shapes", "unit"), CASES)
def test_the_tile_fits_the_registers_beside_an_operand(text: str, shapes: Shapes, unit: VectorUnit) -> None:
    tile = found(text, shapes, unit)
    width = unit.bytes // (8 if text == DOUBLE else 4)
    vectors = math.ceil(tile.lanes / width)
    assert math.prod(rows(tile).values()) * vectors + vectors < unit.registers


@pytest.mark.parametrize(("text", "shapes", "unit"), CASES)
def test_sizes_are_of_independent_loops_and_no_longer_than_they_are(
    text: str, shapes: Shapes, unit: VectorUnit
) -> None:
    tile = found(text, shapes, unit)
    with isl_context() as context:
        statement = reduction(build_scop(specialized(text, shapes), context))
        most = [int(statement.domain.dim_max_val(n).to_python()) + 1 for n in range(len(statement.body.iterators))]
        extents = dict(zip(statement.body.iterators, most, strict=True))
        independent = iterators_in(statement.body.subscripts)
    for name, size in tile.sizes.items():
        assert 1 <= size <= extents[name]
        assert name in independent
    assert tile.lanes > 1


@pytest.mark.parametrize(("text", "shapes", "unit"), CASES)
def test_rows_share_something_that_is_read(text: str, shapes: Shapes, unit: VectorUnit) -> None:
    tile = found(text, shapes, unit)
    with isl_context() as context:
        value = reduction(build_scop(specialized(text, shapes), context)).body.value
    reads = [part for part in walk(value) if isinstance(part, Read)]
    for row in rows(tile):
        assert any(row not in iterators_in(read.subscripts) for read in reads), row


def test_rows_of_other_batches_share_nothing() -> None:
    for unit in UNITS:
        assert "b" not in rows(found(BATCHED, ((16, 4, 40), (16, 40, 64)), unit))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("sizes", "packs"),
    [
        *(((m, k, n), packs) for m, k, n in ((128, 256, 512), (9, 130, 64), (1, 64, 64)) for packs in (True, False)),
        ((7, 129, 50), False),
        ((64, 16, 17), False),
    ],
)
def test_lanes_lie_along_memory_where_an_operand_does(
    sizes: tuple[int, int, int], packs: bool, unit: VectorUnit
) -> None:
    m, k, n = sizes
    tile = chosen(MATMUL, ((m, k), (k, n)), unit, packs=packs)
    assert tile is not None
    assert tile.lane == "n"


@pytest.mark.parametrize("sizes", [(600, 600, 600), (333, 333, 333), (1000, 700, 900), (1024, 1024, 1024)])
def test_a_remainder_does_not_keep_lanes_from_whole_vectors_along_memory(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    tile = found(MATMUL, ((m, k), (k, n)), UNITS[0])
    assert tile.lane == "n"
    assert tile.lanes % 16 == 0
    assert math.prod(tile.sizes.values()) >= 18 * 16


def test_more_results_than_hide_the_latency_amortize_loads_of_the_second_cache() -> None:
    # 1,040 rows of lanes do not stay in the first-level cache.
    large = found(MATMUL, ((1024, 1040), (1040, 1024)), UNITS[0])
    assert math.prod(large.sizes.values()) >= 24 * 16


def test_rows_a_page_apart_are_fewer_than_the_ways_of_a_set() -> None:
    tile = found(MATMUL, ((1024, 1024), (1024, 1024)), UNITS[0])
    assert rows(tile)["m"] < 8


def test_no_operand_is_read_across_its_lines_where_the_other_loop_can_be_the_lanes() -> None:
    text = "def mm(float(M,N) X, float(N,K) Y) -> (Z) { Z(m,k) +=! X(m,n) * Y(n,k) }"
    tile = found(text, ((128, 1024), (1024, 1024)), UNITS[0])
    assert tile.lane == "k"


def test_no_lanes_lie_along_every_second_element_of_a_long_window() -> None:
    text = "def f(float(N,C,H,W) X, float(F,C,P,Q) K) -> (O) { O(n,f,h,w) +=! X(n,c,2*h+p,2*w+q) * K(f,c,p,q) }"
    assert found(text, ((1, 3, 229, 229), (64, 3, 7, 7)), UNITS[0]).lane == "f"


def test_a_remainder_of_rows_is_taken_where_nothing_else_runs_in_the_loops() -> None:
    with isl_context() as context:
        scop = build_scop(specialized(MATMUL, ((256, 64), (64, 256))), context)
        layouts = layouts_of(scop)

        def most_rows(*, shared: bool) -> int:
            around = Surroundings(shared=shared)
            tile = choose_microkernel(reduction(scop), layouts, UNITS[0], packs=True, around=around)
            assert tile is not None
            return tile.sizes["m"]

        assert 256 % most_rows(shared=False) != 0
        assert 256 % most_rows(shared=True) == 0


def test_windows_that_slide_backwards_leave_registers_for_what_several_steps_read() -> None:
    text = """def slid(float(N,C,H,W) X, float(C,F,3,7) K) -> (Y) {
        Y(n,f,h,w) +=! X(n,c,h+1-i,w+3-j) * K(c,f,i,j) where h in 0:H, w in 0:W, h+1-i in 0:H, w+3-j in 0:W
    }"""
    with isl_context() as context:
        scop = build_scop(specialized(text, ((8, 32, 64, 64), (32, 32, 3, 7))), context)
        costs = tile_costs(reduction(scop), layouts_of(scop), UNITS[0], packs=True, chunks={}, written=frozenset())
    # Two vectors of filters: 12 rows would take 24 of 32 registers, and 2 for operands.
    assert costs.tile("f", {"f": 32, "w": 12}) is None
    assert costs.tile("f", {"f": 32, "w": 10}) is not None
    assert costs.tile("f", {"f": 32, "n": 8}) is not None


def test_of_few_registers_fewer_hold_single_elements_of_windows_that_slide() -> None:
    """With 16 of them, four rows of two vectors leave 8: what slides is read again, and not kept."""
    with isl_context() as context:
        scop = build_scop(specialized(SAME, ((1, 64, 32, 32), (64, 64, 3, 3))), context)
        costs = tile_costs(reduction(scop), layouts_of(scop), UNITS[1], packs=True, chunks={}, written=frozenset())
    assert costs.tile("f", {"f": 16, "w": 4}) is not None
    assert costs.tile("f", {"f": 16, "w": 8}) is None
    assert costs.tile("w", {"h": 4, "w": 16}) is not None
    assert costs.tile("w", {"h": 8, "w": 16}) is None


@pytest.mark.parametrize("unit", UNITS[:2])
@pytest.mark.parametrize("side", [2, 3])
def test_filters_are_the_lanes_of_images_that_are_smaller_than_vectors(unit: VectorUnit, side: int) -> None:
    """Each weight is used as often as there are pixels: a copy of all pays where nothing else fills vectors."""
    tile = found(SAME, ((1, 64, side, side), (128, 64, 3, 3)), unit)
    assert tile.lane == "f"
    assert rows(tile)


def test_rows_and_columns_are_one_tile_as_long_as_copies_of_their_borders_are_few() -> None:
    with isl_context() as context:
        for side, copied in ((4, {"h", "w"}), (8, set())):
            scop = build_scop(specialized(SAME, ((1, 64, side, side), (64, 64, 3, 3))), context)
            costs = tile_costs(reduction(scop), layouts_of(scop), UNITS[1], packs=True, chunks={}, written=frozenset())
            assert costs.copied_rows("f", {"f": 16, "h": 2, "w": 2}) == copied


def test_lanes_that_meet_in_one_set_cost_no_less_where_rows_are_not_side_by_side() -> None:
    with isl_context() as context:
        scop = build_scop(specialized(CONVOLUTION, ((2, 32, 34, 34), (16, 32, 3, 3))), context)
        costs = tile_costs(reduction(scop), layouts_of(scop), UNITS[1], packs=True, chunks={}, written=frozenset())
    beside, apart = (costs.tile("f", {"f": 16, name: 4}) for name in "wh")
    assert beside is not None
    assert apart is not None
    assert beside <= apart


def test_rows_beside_each_other_are_turned_in_whole_squares() -> None:
    """Of 130 columns, 13 times 10 have no remainder, but squares of four hold only 8 of the 10."""
    text = "def conv(float(N,C,H,W) X, float(F,C,3,3) K) -> (Y) { Y(n,f,h,w) +=! X(n,c,h+i,w+j) * K(f,c,i,j) }"
    tile = found(text, ((8, 32, 66, 132), (32, 32, 3, 3)), UNITS[0])
    assert tile.lane == "f"
    assert tile.sizes.get("w", 1) % 4 == 0


def test_windows_of_channels_a_page_apart_have_few_lines() -> None:
    """Where all 16 channels of a window meet in a set of the cache, rows of a tile lie in long runs."""
    text = """def slid(float(N,C,D,H,W) X, float(C,F,3,3,3) K) -> (Y) {
        Y(n,f,d,h,w) +=! X(n,c,d-l,h-i,w-j) * K(c,f,l,i,j)
            where d in 0:D+2, h in 0:H+2, w in 0:W+2, d-l in 0:D, h-i in 0:H, w-j in 0:W
    }"""
    assert found(text, ((4, 16, 32, 32, 32), (16, 16, 3, 3, 3)), UNITS[0]).sizes["w"] >= 8


def test_of_tiles_that_cost_the_same_one_leaves_no_remainder() -> None:
    tile = chosen(TRANSPOSED, ((128, 128), (64, 128)))
    assert tile is not None
    assert [extent % size for extent, size in zip((128, 64), tile.sizes.values(), strict=True)] == [0, 0]


@pytest.mark.parametrize("unit", UNITS)
def test_sizes_divide_those_of_larger_tiles(unit: VectorUnit) -> None:
    for text, shapes in ((MATMUL, ((128, 256), (256, 512))), (TRANSPOSED, ((128, 256), (512, 256)))):
        for m, n in ((48, 96), (60, 80), (128, 32)):
            tile = found(text, shapes, unit, within={"m": m, "n": n})
            assert all({"m": m, "n": n}[name] % size == 0 for name, size in tile.sizes.items())


@pytest.mark.parametrize("unit", UNITS)
def test_a_size_that_is_given_stays_and_is_no_lane(unit: VectorUnit) -> None:
    for name in ("m", "n"):
        tile = found(MATMUL, ((128, 256), (256, 512)), unit, fixed={name: 4})
        assert tile.sizes[name] == 4
        assert tile.lane not in (name, "k")


def test_the_same_question_has_the_same_answer() -> None:
    for text, shapes in PRODUCTS:
        first, second = chosen(text, shapes), chosen(text, shapes)
        assert first == second
        assert first is not None


# --- where there is none --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (MATMUL.replace("float", "int32"), ((128, 256), (256, 512))),
        (MATMUL.replace("float", "int8"), ((128, 256), (256, 512))),
        ("def total(float(N,M) X) -> (S) { S +=! X(i,j) }", ((100, 100),)),
        (MATMUL, ((128, 1), (1, 512))),
    ],
    ids=["int32", "int8", "no independent loop", "a single step"],
)
def test_there_is_no_tile(text: str, shapes: Shapes) -> None:
    assert all(chosen(text, shapes, unit) is None for unit in UNITS)


def test_lanes_with_conditions_read_along_memory() -> None:
    for unit in UNITS:
        assert chosen(SAME, ((2, 24, 30, 30), (40, 24, 3, 3)), unit) is not None
        strided = chosen(HALVED, ((2, 24, 30, 30), (24, 3, 3)), unit)
        assert strided is None or strided.lane != "w"


@pytest.mark.parametrize("unit", UNITS)
def test_phases_that_lie_side_by_side_are_in_one_tile(unit: VectorUnit) -> None:
    """Of ``O(n,f,2*u+r,2*v+s)``, rows of ``v`` with both ``s`` are a run of memory; those of ``u`` lie apart."""
    found = chosen(PHASES, ((2, 24, 16, 16), (24, 40, 4, 4)), unit)
    assert found is not None
    assert found.lane == "f"
    assert found.sizes["s"] == 2
    assert found.sizes["v"] >= 4
    assert found.sizes.get("r", 1) == 1


def test_loops_that_lie_end_to_end_are_counted_as_one() -> None:
    text = "def up(float(N,C,H,W) X, float(C,F,2,2) K) -> (O) { O(n,f,2*h+i,2*w+j) +=! X(n,c,h,w) * K(c,f,i,j) }"
    with isl_context() as context:
        scop = build_scop(specialized(text, ((2, 8, 16, 16), (8, 32, 2, 2))), context)
        costs = tile_costs(reduction(scop), layouts_of(scop), UNITS[0], packs=True, chunks={}, written=frozenset())
    assert costs.beside({"f": 16, "w": 8, "j": 2}) == 16
    assert costs.beside({"f": 16, "w": 8}) == 1
    assert costs.beside({"f": 16, "w": 16, "j": 2, "h": 2}) == 32, "the elements between the rows are not in the tile"


def test_vectors_of_one_lane_make_no_tile() -> None:
    assert chosen(MATMUL, ((128, 256), (256, 512)), VectorUnit(4, 32)) is None
    assert chosen(DOUBLE, ((128, 256), (256, 512)), VectorUnit(8, 32)) is None


def test_statements_that_do_not_reduce_or_read_their_own_target_have_no_tile() -> None:
    with isl_context() as context:
        scop = build_scop(specialized(MATMUL, ((128, 256), (256, 512))), context)
        layouts = layouts_of(scop)
        update = reduction(scop)
        own = Read(update.body.target, update.body.subscripts, layouts[update.body.target].type)
        assert choose_microkernel(update, layouts, UNITS[0], packs=True) is not None
        reading = replace(update, body=replace(update.body, value=own))
        assert choose_microkernel(reading, layouts, UNITS[0], packs=True) is None
        others = [statement for statement in scop.statements if statement is not update]
        assert [choose_microkernel(s, layouts, UNITS[0], packs=True) for s in others] == [None]


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_vectors_hold_all_lanes_and_waste_less_than_half_of_one(width: int) -> None:
    for lanes in range(1, 5 * width):
        cut = vector_widths(lanes, width)
        assert sum(used for _, used in cut) == lanes
        assert all(total == used == width for total, used in cut[:-1])
        total, used = cut[-1]
        assert total <= width
        assert total.bit_count() == 1
        assert total < 2 * used


@pytest.mark.parametrize("text", [CONVOLUTION, SAME])
def test_windows_leave_few_registers_to_the_sums(text: str) -> None:
    shapes = (8, 32, 36, 36), (32, 32, 3, 3)
    few, many = (found(text, shapes, unit) for unit in (VectorUnit(32, 16), VectorUnit(32, 32)))
    # What a window reads again is loaded again where there are 16, and kept beside the sums where there are 32.
    assert math.prod(rows(few).values()) * few.lanes // 8 >= 8
    assert math.prod(rows(many).values()) * many.lanes // 8 + many.lanes // 8 + 7 <= 32
    assert "n" not in {few.lane, *rows(few)}
