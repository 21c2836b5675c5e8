"""Inferred ranges are the largest ones that keep every access inside: compared with trying out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tc.language.lower.specialize import specialize
from tc.language.program.program import SizeReference
from tests.language.support import array, lower, signature, value

Read = tuple[int, int, int, int]  # a, b, c and d of x((a*i + b*k + c) / d)
READS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=3
)


def _text(reads: list[Read], kernel: int) -> str:
    parameters = ", ".join(f"float(N{n}) x{n}" for n in range(len(reads)))
    product = " * ".join(f"x{n}(({a}*i + {b}*k + {c}) / {d})" for n, (a, b, c, d) in enumerate(reads))
    return f"def f({parameters}) -> (y) {{ y(i) +=! {product} where k in 0:{kernel} }}"


def _is_inside(reads: list[Read], extents: list[int], kernel: int, i: int) -> bool:
    return all(
        (a * i + b * k + c) // d < extent
        for (a, b, c, d), extent in zip(reads, extents, strict=False)
        for k in range(kernel)
    )


@settings(max_examples=150)
@given(READS, st.lists(st.integers(0, 12), min_size=3, max_size=3), st.integers(1, 4))
def test_the_end_of_a_range_is_the_first_point_that_leaves(reads: list[Read], extents: list[int], kernel: int) -> None:
    program = lower(_text(reads, kernel))
    specs = {f"x{n}": array(extents[n]) for n in range(len(reads))}
    result = specialize(program, signature(None, **specs))
    expected = next(i for i in range(50) if not _is_inside(reads, extents, kernel, i))
    assert result.layouts["y"].shape == (expected,)


@settings(max_examples=60)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(-3, 3), st.integers(-3, 3))
def test_guards_that_grant_an_access_bound_nothing(size: int, other: int, low: int, high: int) -> None:
    """What the guard grants leaves the range to the other access; the proof agrees for every size."""
    guarded = f"(i + {low} >= 0 && i + {high} < N ? x(i + {low}) : 0)"
    program = lower(f"def f(float(N) x, float(M) z) -> (y) {{ y(i) = z(i) + {guarded} }}")
    end = program.statements[0].iterators[0].end
    if high >= low:
        assert end == SizeReference("M")
        specialize(program, signature(None, x=array(size), z=array(other)))
    assert "x(i" in value(program.statements[0])
