"""Everything that decides which kernel is the right one: a cache key, ingredient by ingredient."""

from __future__ import annotations

import dataclasses

from tc.base.frozen import frozen
from tc.cache.format.encoding import digest_of


@frozen
class Ingredients:
    """What a kernel was made from; two calls with equal ingredients may run the same kernels.

    Every field is text in a canonical form that its maker chooses: the same thing is always written the same way.
    ``program``: the program, without its names.  ``alignment``: in bytes.  ``scalars``: the values of integer
    arguments that were fixed.  ``aliases``: which arguments overlap.  ``symbolic``: dimensions that stay symbolic,
    with their bounds.  ``compiler`` and ``generator``: versions of the target's compiler and of this package.
    """

    program: str
    shapes: str
    dtypes: str
    strides: str
    alignment: str
    scalars: str
    aliases: str
    symbolic: str
    target: str
    architecture: str
    compiler: str
    generator: str

    @property
    def key(self) -> str:
        """SHA-256 over all fields, in hexadecimal."""
        return digest_of("kernel", ((name, getattr(self, name)) for name in FIELDS))

    @property
    def program_hash(self) -> str:
        """SHA-256 of the program alone, by which kernels of one program are found."""
        return digest_of("program", (("program", self.program),))

    def difference(self, other: Ingredients) -> tuple[tuple[str, str, str], ...]:
        """(field, ours, theirs) for every field that differs, in the order of the fields."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in FIELDS)
        return tuple((name, ours, theirs) for name, ours, theirs in pairs if ours != theirs)


FIELDS = tuple(field.name for field in dataclasses.fields(Ingredients))
"""The names of all ingredients, in the order in which they are hashed."""
