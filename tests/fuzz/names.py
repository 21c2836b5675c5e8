"""Names for everything: plain ones, and ones that mean something in C, in CUDA or elsewhere in the language."""

from __future__ import annotations

from tests.fuzz.source import Source

_TENSORS = ("A", "B", "C", "D", "X", "Y", "T", "O", "W", "acc")
_AWKWARD_TENSORS = (
    "in", "out", "where", "register", "static", "restrict", "threadIdx", "main", "2LUT", "NULL", "I", "complex",
    "errno", "linux", "unix", "assert", "volatile", "auto", "signed", "union", "exists", "def", "INFINITY", "EOF",
    "memory", "__global__", "printf", "malloc", "default", "int32_t",
)  # fmt: skip
_ITERATORS = ("i", "j", "k", "l", "m", "n", "r_k", "ii")
_AWKWARD_ITERATORS = (
    "for",
    "if",
    "while",
    "return",
    "goto",
    "t0",
    "tid",
    "y",
    "lambda",
    "None",
    "this",
    "sizeof",
    "2i",
    "3d",
    "exp",
    "min",
    "exists",
    "mod",
)
_SIZES = ("N", "M", "K", "L", "P", "H")
_AWKWARD_SIZES = ("NAN", "size_t", "long", "BUFSIZ", "blockDim", "enum", "4K")
_SCALARS = ("s", "alpha", "sh", "beta", "offset")
_DEFINITIONS = ("f", "helper", "g", "kernel", "inner")
_AWKWARD = 0.08


class Names:
    """Gives every name of one text once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._taken: set[str] = set()

    def tensor(self) -> str:
        return self._fresh(_TENSORS, _AWKWARD_TENSORS)

    def size(self) -> str:
        return self._fresh(_SIZES, _AWKWARD_SIZES)

    def scalar(self) -> str:
        return self._fresh(_SCALARS, ())

    def definition(self) -> str:
        return self._fresh(_DEFINITIONS, ())

    def iterators(self, count: int) -> list[str]:
        """Names for the iterators of one statement; another statement may use them again."""
        plain = [name for name in _ITERATORS if name not in self._taken]
        awkward = [name for name in _AWKWARD_ITERATORS if name not in self._taken]
        names = plain[:count] if self._source.chance(0.5) else self._source.sample(plain, count)
        if names and self._source.chance(_AWKWARD):
            names[0] = self._source.choice(awkward)
        return names

    def _fresh(self, plain: tuple[str, ...], awkward: tuple[str, ...]) -> str:
        pool = awkward if awkward and self._source.chance(_AWKWARD) else plain
        free = [name for name in pool if name not in self._taken] or [
            f"{name}{number}" for name in pool for number in range(1, 100) if f"{name}{number}" not in self._taken
        ]
        name = free[0] if pool is plain and self._source.chance(0.7) else self._source.choice(free)
        self._taken.add(name)
        return name
