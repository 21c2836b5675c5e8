"""Iterations that are read off subscripts digit by digit, beside what isl finds."""

from __future__ import annotations

import random

import islpy as isl
import pytest

from tc.polyhedral.iterations import find_inverse
from tc.polyhedral.ranges import UNBOUNDED, Range

# Iterators with their greatest values from 0 on, the condition on them, and the subscripts.
FOUND = {
    "digits": ({"a": 3, "b": 7, "c": 11}, "true", ("96a + 12b + c",)),
    "less than a tile": ({"a": 3, "b": 7, "c": 11}, "96a + 12b + c <= 300 and b <= 5", ("96a + 12b + c",)),
    "gaps": ({"a": 3, "b": 2}, "true", ("40a + 7b + 5",)),
    "backwards": ({"a": 3, "b": 15}, "true", ("100 - 16a - b",)),
    "both ways": ({"a": 3, "b": 15}, "true", ("16a - b",)),
    "several subscripts": ({"a": 3, "b": 3, "c": 3}, "c <= a", ("4a + b", "a + c")),
    "the second one first": ({"a": 9, "b": 9}, "true", ("a + b", "a")),
    "one value": ({"a": 9, "b": 0}, "true", ("a", "b + 2")),
    "a remainder": ({"a": 30, "b": 3}, "a mod 3 = 1", ("4a + b",)),
    "none": ({}, "true", ("7",)),
}
NOT_FOUND = {
    "a sum": ({"a": 3, "b": 3}, "true", ("a + b",)),
    "one that is nowhere": ({"a": 3, "b": 3}, "true", ("a",)),
    "digits that overlap": ({"a": 3, "b": 8}, "true", ("8a + b",)),
    "a quotient": ({"a": 8}, "true", ("floor(a / 2)",)),
}


def parts(
    iterators: dict[str, int], condition: str, subscripts: tuple[str, ...]
) -> tuple[list[isl.PwAff], isl.Set, list[Range], isl.Map]:
    context = isl.DEFAULT_CONTEXT
    loops = f"loops[{', '.join(iterators)}]"
    bounds = " and ".join([condition, *(f"0 <= {name} <= {most}" for name, most in iterators.items())])
    points = isl.Set.read_from_str(context, f"{{ {loops} : {bounds} }}")
    arguments = [isl.PwAff.read_from_str(context, f"{{ {loops} -> [({subscript})] }}") for subscript in subscripts]
    instances = isl.Map.read_from_str(context, f"{{ {loops} -> S[{', '.join(f'({s})' for s in subscripts)}] }}")
    ranges = [Range(0, most) for most in iterators.values()]
    return arguments, points, ranges, instances.intersect_domain(points)


@pytest.mark.parametrize("given", FOUND.values(), ids=FOUND)
def test_digits_tell_the_iteration(given: tuple[dict[str, int], str, tuple[str, ...]]) -> None:
    arguments, points, ranges, instances = parts(*given)
    inverse = find_inverse(arguments, points, ranges, instances.get_space().range())
    assert inverse is not None
    assert inverse.runs.is_equal(instances.range())
    found = isl.Map.from_multi_aff(inverse.iteration).intersect_domain(inverse.runs)
    assert found.is_equal(instances.reverse())


@pytest.mark.parametrize("given", NOT_FOUND.values(), ids=NOT_FOUND)
def test_what_subscripts_do_not_tell_is_not_guessed(given: tuple[dict[str, int], str, tuple[str, ...]]) -> None:
    arguments, points, ranges, instances = parts(*given)
    assert find_inverse(arguments, points, ranges, instances.get_space().range()) is None


def test_wrong_ranges_are_found_out() -> None:
    """The guess is proven: no range that is wrong makes an inverse that is."""
    arguments, points, _, instances = parts({"a": 3, "b": 8}, "true", ("8a + b",))
    space = instances.get_space().range()
    for lie in (Range(0, 7), Range(0, 0), Range(1, 1), UNBOUNDED):
        assert find_inverse(arguments, points, [Range(0, 3), lie], space) is None


def test_random_digits_are_those_that_isl_finds() -> None:
    rng, found = random.Random(0), 0
    for _ in range(60):
        iterators = {name: rng.randrange(5) for name in "abc"[: rng.randint(1, 3)]}
        subscripts = tuple(
            " + ".join([str(rng.randint(-3, 3)), *(f"{rng.choice((0, 1, 1, 4, 12, -5))}{name}" for name in iterators)])
            for _ in range(rng.randint(1, 2))
        )
        arguments, points, ranges, instances = parts(iterators, rng.choice(("true", "a mod 2 = 0")), subscripts)
        inverse = find_inverse(arguments, points, ranges, instances.get_space().range())
        if inverse is not None:
            found += 1
            assert instances.is_injective()
            assert inverse.runs.is_equal(instances.range())
    assert found > 20
