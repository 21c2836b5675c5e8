"""Everything that decides which kernel is the right one: a cache key, ingredient by ingredient."""

from __future__ import annotations

import dataclasses

from tc.base.frozen import frozen
from tc.cache.format.encoding import digest_of

# In the program of a kernel whose numerics are not the default: a comment at its end, with their JSON.
_NUMERICS = "\n# numerics: "


@frozen
class Ingredients:
    """What a kernel was made from; two calls with equal ingredients may run the same kernels.

    Every field is text in a canonical form that its maker chooses: the same thing is always written the same way.
    ``program``: the program, without its names, and what its bits may depend on if not on its arguments alone
    (``with_numerics``).  ``alignment``: in bytes.  ``scalars``: the values of integer
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

    @property
    def definition(self) -> str:
        """The program as texts have it."""
        return definition_in(self.program)

    @property
    def numerics(self) -> str:
        """As ``with_numerics`` was given them."""
        return self.program.partition(_NUMERICS)[2]

    def difference(self, other: Ingredients) -> tuple[tuple[str, str, str], ...]:
        """(field, ours, theirs) for every field that differs, in the order of the fields."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in FIELDS)
        return tuple((name, ours, theirs) for name, ours, theirs in pairs if ours != theirs)


def definition_in(program: str) -> str:
    """What ``with_numerics`` was given."""
    return program.partition(_NUMERICS)[0]


def with_numerics(program: str, numerics: str) -> str:
    """The ingredient ``program`` of a kernel with such numerics, in JSON; empty for the default ones."""
    return f"{program}{_NUMERICS}{numerics}" if numerics else program


FIELDS = tuple(field.name for field in dataclasses.fields(Ingredients))
"""The names of all ingredients, in the order in which they are hashed."""
