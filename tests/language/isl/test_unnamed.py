"""Keys of what is found once for all statements that are alike."""

from __future__ import annotations

import islpy as isl

from tc.language.isl.unnamed import Unnamed


def test_names_do_not_matter_and_all_else_does() -> None:
    context = isl.Context()

    def key(text: str) -> Unnamed:
        return Unnamed(isl.Map.read_from_str(context, text))

    one = key("{ S[i, j] -> T[k] : k = i and 0 <= i < 7 }")
    assert {one: 1}[key("{ A[a, b] -> B[c] : c = a and 0 <= a < 7 }")] == 1
    for other in (
        "{ S[i, j] -> T[k] : k = j and 0 <= i < 7 }",
        "{ S[i, j] -> T[k] : k = i and 0 <= i < 8 }",
        "{ S[i, j] -> T[k, l] : k = i and 0 <= i < 7 }",
        "{ S[i] -> T[k] : k = i and 0 <= i < 7 }",
    ):
        assert one != key(other)
    points = Unnamed(isl.Set.read_from_str(context, "{ S[i] : 0 <= i < 7 }"))
    assert points == Unnamed(isl.Set.read_from_str(context, "{ T[i] : 0 <= i < 7 }"))
    assert points != one
