"""Relations and sets whatever their statements are called: keys of what is found once for all that are alike."""

from __future__ import annotations

from typing import Final

import islpy as isl


class Unnamed:
    """A relation without the names of its ends, or a set; equal to those that isl writes in the same way."""

    def __init__(self, found: isl.Map | isl.Set) -> None:
        self._found: Final = (
            found.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
            if isinstance(found, isl.Map)
            else found.reset_tuple_id()
        )

    def __hash__(self) -> int:
        return hash(self._found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unnamed):
            return False
        match self._found, other._found:
            case isl.Map() as own, isl.Map() as others:
                return bool(own.plain_is_equal(others))
            case isl.Set() as own, isl.Set() as others:
                return bool(own.plain_is_equal(others))
            case _:
                return False
