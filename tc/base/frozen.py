"""``@frozen``: a frozen dataclass with slots, made in a tenth of the time that ``dataclasses`` takes.

``dataclass(frozen=True, slots=True)`` compiles the text of six methods for every class, makes the class twice, and asks
``inspect`` for a docstring where there is none: processes that only call cached kernels would spend a third of their
start on that.  Here ``__init__`` alone is made of code, after some objects: that of a class with as many fields, with
other names in it, or compiled where a field has more than a default; the other methods are closures over the
fields.  All that ``dataclasses`` does with its classes works: ``fields``, ``replace``, ``asdict``, matching,
pickling.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from functools import cache, partial
from operator import attrgetter
from types import FunctionType
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform

Made = TypeVar("Made")


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Model:
    """What ``dataclasses`` notes of a class and of a field; without methods, for these would be compiled."""

    value: int


def _frozen_parameters() -> Any:
    noted: Any = _Model.__dict__["__dataclass_params__"]
    for name in ("init", "repr", "eq", "frozen", "slots"):
        if hasattr(noted, name):  # Python 3.11 does not note slots
            setattr(noted, name, True)
    return noted


# To compile ``__init__`` takes as long as to make so many objects more without it; to rename another one, as so few.
FEW: Final = 20
FEW_PLAIN: Final = 2
_FROZEN: Final = _frozen_parameters()
_IS_FIELD: Final = _Model.__dict__["__dataclass_fields__"]["value"]._field_type
_NO_FIELDS: Final = ("ClassVar", "InitVar", "KW_ONLY")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Made]) -> type[Made]:
    """The class as ``dataclass(frozen=True, slots=True)`` makes it.

    TypeError where it has a ClassVar or an InitVar, or dataclasses as bases.
    """
    if any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
        raise TypeError(f"{cls.__name__}: @frozen does not know dataclasses as bases")
    own = dict(cls.__dict__)
    fields = tuple(_field(cls, name, annotation) for name, annotation in own.get("__annotations__", {}).items())
    names = tuple(one.name for one in fields)
    for name in ("__dict__", "__weakref__", *names):
        own.pop(name, None)
    methods = {"__init__": _Init(fields, post=hasattr(cls, "__post_init__")), **_methods(fields)}
    # Whoever writes __eq__ has a __hash__ of None.
    own |= {name: method for name, method in methods.items() if own.get(name) is None}
    own |= {
        "__doc__": own["__doc__"] or cls.__name__,
        "__slots__": names,
        "__match_args__": tuple(one.name for one in fields if one.init and not one.kw_only),
        "__dataclass_fields__": {one.name: one for one in fields},
        "__dataclass_params__": _FROZEN,
    }
    metaclass: Any = type(cls)
    made: type[Made] = metaclass(cls.__name__, cls.__bases__, own)
    made.__qualname__ = cls.__qualname__
    return made


def _field(cls: type, name: str, annotation: object) -> Field[Any]:
    """The field that an annotation stands for, with the default that the class has for it."""
    if f"{annotation}".removeprefix("typing.").removeprefix("dataclasses.").startswith(_NO_FIELDS):
        raise TypeError(f"{cls.__name__}: @frozen knows neither ClassVar nor InitVar")
    default = cls.__dict__.get(name, MISSING)
    found: Any = default if isinstance(default, Field) else field(default=default)
    if found.default.__class__.__hash__ is None:
        raise TypeError(f"{cls.__name__}: the default of {name} could change; use default_factory")
    found.name, found.type, found._field_type = name, annotation, _IS_FIELD
    found.kw_only = False if found.kw_only is MISSING else found.kw_only
    return found  # type: ignore[no-any-return]


class _Init:
    """Stands for ``__init__`` of a class until a few objects are made, or the method is looked up in the class.

    Most classes have fewer objects in a process that only calls cached kernels.
    """

    def __init__(self, fields: tuple[Field[Any], ...], *, post: bool) -> None:
        self.fields: Final = fields
        self.post: Final = post
        self.made = 0
        self.few: Final = FEW_PLAIN if _is_plain(fields) else FEW
        self.taken: Final = [one.name for one in fields if one.init and not one.kw_only]
        self.known: Final = {one.name for one in fields if one.init}

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        if instance is not None and self.made < self.few:
            self.made += 1
            return partial(self._interpreted, instance)
        method = self._compiled()
        return method if instance is None else method.__get__(instance, owner)  # type: ignore[no-any-return]

    def _compiled(self) -> Any:
        made = _init(self.fields, post=self.post)
        made.__qualname__ = f"{self.owner.__qualname__}.__init__"
        self.owner.__init__ = made  # type: ignore[misc]  # the class is complete with it
        return made

    def _interpreted(self, instance: Any, *values: object, **named: object) -> None:
        given = {**named, **dict(zip(self.taken, values, strict=False))}
        if len(given) < len(named) + len(values) or not given.keys() <= self.known:
            self._compiled()(instance, *values, **named)  # which says what is wrong
        for one in self.fields:
            if one.name in given:
                object.__setattr__(instance, one.name, given[one.name])
            elif one.default_factory is not MISSING:
                object.__setattr__(instance, one.name, one.default_factory())
            elif one.default is not MISSING:
                object.__setattr__(instance, one.name, one.default)
            elif one.init:
                self._compiled()(instance, *values, **named)
        if self.post:
            instance.__post_init__()


def _methods(fields: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    """All methods but ``__init__``."""
    names = tuple(one.name for one in fields)
    compared = _values([one.name for one in fields if one.compare])
    hashed = _values([one.name for one in fields if (one.compare if one.hash is None else one.hash)])

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
        "__repr__": _text,
        "__eq__": equal,
        "__hash__": key,
        "__getstate__": state,
        "__setstate__": restore,
        "__setattr__": _refuse_to_assign,
        "__delattr__": _refuse_to_delete,
    }


def _text(self: Any) -> str:
    shown = (name for name, one in self.__dataclass_fields__.items() if one.repr)
    return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"


def _refuse_to_assign(_self: object, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _values(names: list[str]) -> Callable[[object], object]:
    """The values of these fields as a tuple, which compares them by identity first, as dataclasses do."""
    if not names:
        return lambda _self: ()
    values = attrgetter(*names)
    return values if len(names) > 1 else lambda self: (values(self),)


def _init(fields: tuple[Field[Any], ...], *, post: bool) -> Any:
    """``__init__``; fields with ``init=False`` are no parameters, and are set here where they have a default."""
    return _plain_init(fields, post=post) if _is_plain(fields) else _written_init(fields, post=post)


def _is_plain(fields: tuple[Field[Any], ...]) -> bool:
    """Whether all fields are parameters, those with a default last, and none is made anew."""
    given = [one.default is not MISSING for one in fields]
    simple = all(one.init and not one.kw_only and one.default_factory is MISSING for one in fields)
    return simple and given == sorted(given)


def _plain_init(fields: tuple[Field[Any], ...], *, post: bool) -> FunctionType:
    """``__init__`` whose parameters are the fields: that of another class with as many, in a tenth of the time."""
    pattern = _pattern(len(fields), post=post)
    code, names = pattern.__code__, {f"_{place}": one.name for place, one in enumerate(fields)}
    own = code.replace(
        co_varnames=tuple(names.get(name, name) for name in code.co_varnames),
        co_consts=tuple(names.get(value, value) if isinstance(value, str) else value for value in code.co_consts),
    )
    defaults = tuple(one.default for one in fields if one.default is not MISSING)
    return FunctionType(own, pattern.__globals__, "__init__", defaults)


@cache
def _pattern(count: int, *, post: bool) -> Any:
    fields = [field() for _ in range(count)]
    for place, one in enumerate(fields):
        one.name, one.kw_only = f"_{place}", False
    return _written_init(tuple(fields), post=post)


def _written_init(fields: tuple[Field[Any], ...], *, post: bool) -> Any:
    """Any ``__init__``, from its text."""
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
    return known["__init__"]
