"""``@frozen``: a frozen dataclass with slots, made in a quarter of the time that ``dataclasses`` takes.

``dataclass(frozen=True, slots=True)`` compiles the text of six methods for every class, and processes that only call
cached kernels would spend a third of their start on that.  Here ``__init__`` alone is compiled; the other methods are
closures over the fields.  All that ``dataclasses`` does with its classes works: ``fields``, ``replace``, ``asdict``,
matching, pickling.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform

Made = TypeVar("Made")


@dataclasses.dataclass(frozen=True)
class _Model:
    """Of which ``dataclasses`` notes that it is frozen."""


_FROZEN: Final = _Model.__dict__["__dataclass_params__"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Made]) -> type[Made]:
    """The class as ``dataclass(frozen=True, slots=True)`` makes it.

    TypeError where it has a ClassVar or an InitVar, or dataclasses as bases.
    """
    if any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
        raise TypeError(f"{cls.__name__}: @frozen does not know dataclasses as bases")
    own = dict(cls.__dict__)
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    if len(fields) < len(made.__dict__["__dataclass_fields__"]):
        raise TypeError(f"{cls.__name__}: @frozen knows neither ClassVar nor InitVar")
    methods = {"__init__": _init(fields, post=hasattr(made, "__post_init__")), **_methods(fields)}
    for name, method in methods.items():
        # Whoever writes __eq__ has a __hash__ of None.
        if own.get(name) is None:
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            setattr(made, name, method)
    setattr(made, "__dataclass_params__", _FROZEN)  # noqa: B010  type checkers do not know the name
    return made


def _methods(fields: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    """All methods but ``__init__``."""
    names = tuple(one.name for one in fields)
    shown = tuple(one.name for one in fields if one.repr)
    compared = _values([one.name for one in fields if one.compare])
    hashed = _values([one.name for one in fields if (one.compare if one.hash is None else one.hash)])

    def text(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"

    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if type(other) is type(self) else NotImplemented

    def key(self: object) -> int:
        return hash(hashed(self))

    def state(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def restore(self: object, state: list[object]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {
        "__repr__": text,
        "__eq__": equal,
        "__hash__": key,
        "__getstate__": state,
        "__setstate__": restore,
        "__setattr__": lambda _self, name, _value: _refuse("assign to", name),
        "__delattr__": lambda _self, name: _refuse("delete", name),
    }


def _refuse(what: str, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _values(names: list[str]) -> Callable[[object], object]:
    """The values of these fields as a tuple, which compares them by identity first, as dataclasses do."""
    if not names:
        return lambda _self: ()
    values = attrgetter(*names)
    return values if len(names) > 1 else lambda self: (values(self),)


def _init(fields: tuple[Field[Any], ...], *, post: bool) -> Callable[..., Any]:
    """``__init__``; fields with ``init=False`` are no parameters, and are set here where they have a default."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": MISSING}
    taken: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for one in fields:
        name, default, otherwise, value = one.name, "", "", one.name
        if one.default_factory is not MISSING:
            known[f"_make_{name}"] = one.default_factory
            default, otherwise = "=_absent", f"_make_{name}()"
            value = f"{otherwise} if {name} is _absent else {name}"
        elif one.default is not MISSING:
            known[f"_default_{name}"] = one.default
            default, otherwise = f"=_default_{name}", f"_default_{name}"
        if one.init:
            (named if one.kw_only else taken).append(f"{name}{default}")
            lines.append(f" _set(self, {name!r}, {value})")
        elif otherwise:
            lines.append(f" _set(self, {name!r}, {otherwise})")
    lines += [" self.__post_init__()"] if post else []
    parameters = ", ".join(["self", *taken, *(["*", *named] if named else [])])
    exec("\n".join([f"def __init__({parameters}):", *(lines or [" pass"])]), known)
    return known["__init__"]  # type: ignore[no-any-return]
