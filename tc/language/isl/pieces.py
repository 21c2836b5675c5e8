"""What isl's unions and piecewise functions consist of, as lists; isl hands them to callbacks one by one."""

from __future__ import annotations

import islpy as isl


def sets_of(union: isl.UnionSet) -> list[isl.Set]:
    """The sets of a union, one for every space, in isl's order."""
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return found


def maps_of(union: isl.UnionMap) -> list[isl.Map]:
    """The maps of a union, one for every pair of spaces, in isl's order."""
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return found


def functions_of(union: isl.UnionPwAff) -> list[isl.PwAff]:
    """The functions of a union, one for every space of arguments, in isl's order."""
    found: list[isl.PwAff] = []
    union.foreach_pw_aff(found.append)
    return found


def basic_sets_of(union: isl.Set) -> list[isl.BasicSet]:
    """The convex sets that a set is the union of; they may overlap."""
    found: list[isl.BasicSet] = []
    union.foreach_basic_set(found.append)
    return found


def pieces_of(function: isl.PwAff) -> list[tuple[isl.Set, isl.Aff]]:
    """The affine functions that a piecewise one consists of, each with the part of the domain where it holds."""
    found: list[tuple[isl.Set, isl.Aff]] = []
    function.foreach_piece(lambda domain, piece: found.append((domain, piece)))
    return found
