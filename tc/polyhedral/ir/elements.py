"""Statements that run once for every element that they write, whatever subscripts it is written at.

``y(i/2) +=! a(i)`` initializes every element of ``y`` once, though two instances of the update share it: the instances
of the initialization are the elements themselves, the image of the iteration domain under the subscripts.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.program.program import Expression, IteratorReference, Read, Statement, rebuild


def element_names(statement: Statement) -> tuple[str, ...]:
    """Names for the subscripts of the elements that a statement writes: those of instances that are elements."""
    return tuple(f"d{dimension}" for dimension in range(len(statement.subscripts)))


def at_elements(statement: Statement) -> Statement:
    """The statement with one iterator for every subscript; what it reads at these subscripts, it reads there, too.

    Its ranges are left out: the instances are ``element_instances``.
    """
    subscripts: tuple[Expression, ...] = tuple(map(IteratorReference, element_names(statement)))

    def moved(expression: Expression) -> Expression:
        if isinstance(expression, Read) and expression.subscripts == statement.subscripts:
            return replace(expression, subscripts=subscripts)
        return rebuild(expression, moved)

    return replace(statement, iterators=(), conditions=(), subscripts=subscripts, value=moved(statement.value))


def element_instances(statement: Statement, write: isl.Map) -> isl.Set:
    """``{ statement[element] }``: all elements that ``write`` has, each of them once.

    ``write``: ``{ instance -> tensor[element] }``.
    """
    elements = write.range().coalesce().set_tuple_name(statement.name)
    for dimension, name in enumerate(element_names(statement)):
        elements = elements.set_dim_name(isl.dim_type.set, dimension, isl_name(name))
    return elements
