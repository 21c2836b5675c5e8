"""Parts of values that fewer instances compute, for their proofs.

``Hoisted``: a part of a statement's value that is computed once for all instances that share it.  ``FactoredOut``: a
divisor of all terms of a sum, by which the sum is divided.
"""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Hoisted:
    """``statement``: whose value it was a part of; ``made``: the statement that computes it, into ``tensor``."""

    statement: str
    made: str
    tensor: str

    def __str__(self) -> str:
        return f"{self.statement}: {self.tensor} is computed once, by {self.made}"


@frozen
class FactoredOut:
    """``weights``: the statement that divided; ``product``: whose terms have its values as factors, and which goes to
    ``tensor``; ``divided``: the statement behind it that divides.
    """

    weights: str
    product: str
    divided: str
    tensor: str

    def __str__(self) -> str:
        return f"{self.weights}: its sum divides the result of {self.product}, in {self.divided}"
