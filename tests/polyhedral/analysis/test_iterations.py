"""Iterations that are read off subscripts digit by digit, beside what isl finds."""

from __future__ import annotations

import random

import islpy as isl
import pytest

from tc.polyhedral.analysis.iterations import find_inverse
from tc.polyhedral.analysis.ranges import UNBOUNDED, Range

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


def functions(context: isl.Context, values: tuple[str, ...]) -> list[isl.Aff]:
    return [isl.Aff.read_from_str(context, f"{{ S[i, j] -> [({value})] }}") for value in values]


@pytest.mark.parametrize("condition", ["(a - b) mod 2 = 0", "(a - b) mod 2 = 0 and a >= b and a <= b + 20"])
def test_a_guess_tells_the_iteration_where_subscripts_divide(condition: str) -> None:
    """The loops of ``y(2 * i + j)``, and a tile of them."""
    arguments, points, ranges, instances = parts({"a": 40, "b": 7}, condition, ("floor((a - b) / 2)", "b"))
    space = instances.get_space().range()
    assert find_inverse(arguments, points, ranges, space) is None
    guess = functions(points.get_ctx(), ("2i + j", "j"))
    inverse = find_inverse(arguments, points, ranges, space, lambda: guess)
    assert inverse is not None
    assert inverse.runs.is_equal(instances.range())
    assert isl.Map.from_multi_aff(inverse.iteration).intersect_domain(inverse.runs).is_equal(instances.reverse())


@pytest.mark.parametrize("guess", [("2i + j", "j + 1"), ("2i", "j"), ("i + j", "j"), ("2i + j", "i"), ("2j + i", "j")])
def test_a_guess_that_is_wrong_is_found_out(guess: tuple[str, ...]) -> None:
    arguments, points, ranges, instances = parts({"a": 40, "b": 7}, "(a - b) mod 2 = 0", ("floor((a - b) / 2)", "b"))
    space = instances.get_space().range()
    assert find_inverse(arguments, points, ranges, space, lambda: functions(points.get_ctx(), guess)) is None


def test_a_guess_does_not_make_one_instance_of_two_points() -> None:
    """Without the condition, two iterations have the instance of one; the guess is right for half of them."""
    arguments, points, ranges, instances = parts({"a": 40, "b": 7}, "true", ("floor((a - b) / 2)", "b"))
    guess = functions(points.get_ctx(), ("2i + j", "j"))
    assert find_inverse(arguments, points, ranges, instances.get_space().range(), lambda: guess) is None


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
