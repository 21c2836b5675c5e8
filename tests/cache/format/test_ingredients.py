"""A key is made of all ingredients, and tells which one differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tc.base.errors import CacheError
from tc.cache.format.encoding import digest_of
from tc.cache.format.ingredients import FIELDS, Ingredients
from tests.cache.samples import kernel


def test_the_key_is_a_hash_that_does_not_change_between_versions() -> None:
    assert kernel().key == kernel().key
    assert Ingredients(*FIELDS).key == "e375772095241249f55af4f8d6750cddc823b78b1a27a0343989e2dad7f570e7"


@pytest.mark.parametrize("field", FIELDS)
def test_every_ingredient_changes_the_key(field: str) -> None:
    other = replace(kernel(), **{field: getattr(kernel(), field) + " "})
    assert other.key != kernel().key
    assert kernel().difference(other) == ((field, getattr(kernel(), field), getattr(other, field)),)
    assert (other.program_hash != kernel().program_hash) == (field == "program")


def test_text_that_moves_from_one_ingredient_to_the_next_changes_the_key() -> None:
    one = replace(kernel(), shapes="ab", dtypes="c")
    assert one.key != replace(kernel(), shapes="a", dtypes="bc").key
    assert one.key != replace(kernel(), shapes='ab"], ["dtypes", "c', dtypes="").key


def test_equal_ingredients_do_not_differ() -> None:
    assert kernel().difference(kernel()) == ()


def test_values_of_different_types_have_different_hashes() -> None:
    values = ("1", 1, 1.0, b"1", None, (1.0,), "", (), b"", '{"bytes": 1}')
    digests = {digest_of("kind", (("name", value),)) for value in values}
    assert len(digests) == len(values)
    assert digest_of("kind", (("name", 1),)) != digest_of("kinds", (("name", 1),))
    assert digest_of("kind", (("name", 1),)) != digest_of("kind", (("other", 1),))


def test_the_sign_of_zero_does_not_count() -> None:
    assert digest_of("kind", (("name", -0.0),)) == digest_of("kind", (("name", 0.0),))
    assert digest_of("kind", (("name", (-0.0,)),)) == digest_of("kind", (("name", (0.0,)),))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), (1.0, -float("inf"))])
def test_numbers_that_are_not_finite_are_refused(value: float | tuple[float, ...]) -> None:
    with pytest.raises(CacheError, match="a kind holds a number that is not finite; store only finite numbers"):
        digest_of("kind", (("name", value),))
