"""``@frozen`` makes what ``dataclass(frozen=True, slots=True)`` makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, ClassVar

import pytest

from tc.base.frozen import FEW, FEW_PLAIN, frozen


@frozen
class Ours:
    """What all sorts of fields are."""

    a: int
    b: str = "x"
    c: dict[str, int] = field(default_factory=dict, hash=False)
    d: float = field(default=0.5, compare=False, repr=False)
    e: int = field(default=3, kw_only=True)
    f: tuple[int, ...] = field(init=False, default=(1, 2))

    def doubled(self) -> int:
        return 2 * self.a


@dataclass(frozen=True, slots=True)
class Theirs:
    """What all sorts of fields are."""

    a: int
    b: str = "x"
    c: dict[str, int] = field(default_factory=dict, hash=False)
    d: float = field(default=0.5, compare=False, repr=False)
    e: int = field(default=3, kw_only=True)
    f: tuple[int, ...] = field(init=False, default=(1, 2))

    def doubled(self) -> int:
        return 2 * self.a


@frozen
class Checked:
    """Looks at its only field, and makes another one."""

    a: float
    half: float = field(init=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("negative")
        object.__setattr__(self, "half", self.a / 2)


@frozen
class Named:
    """Has a text and an equality of its own."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.name.lower() == self.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())

    def __repr__(self) -> str:
        return self.name


@frozen
class One:
    """A single field."""

    value: float


@frozen
class Nothing:
    """No fields."""


BOTH = pytest.mark.parametrize("kind", [Ours, Theirs])


@BOTH
def test_fields_are_those_of_a_dataclass(kind: type[Any]) -> None:
    assert [f.name for f in dataclasses.fields(kind)] == ["a", "b", "c", "d", "e", "f"]
    assert kind.__match_args__ == ("a", "b", "c", "d")
    assert kind.__slots__ == ("a", "b", "c", "d", "e", "f")
    assert kind.__doc__ == "What all sorts of fields are."
    assert list(inspect.signature(kind).parameters) == ["a", "b", "c", "d", "e"]
    one = kind(1, c={"k": 2})
    assert dataclasses.is_dataclass(type(one))
    assert not hasattr(one, "__dict__")
    assert dataclasses.asdict(one) == {"a": 1, "b": "x", "c": {"k": 2}, "d": 0.5, "e": 3, "f": (1, 2)}
    assert dataclasses.astuple(one) == (1, "x", {"k": 2}, 0.5, 3, (1, 2))
    assert repr(one) == f"{kind.__name__}(a=1, b='x', c={{'k': 2}}, e=3, f=(1, 2))"
    assert one.doubled() == 2


@BOTH
def test_values_are_compared_and_hashed_as_fields_say(kind: type[Any]) -> None:
    assert kind(1) == kind(1, d=9.0) != kind(2)
    assert kind(1) != kind(1, c={"k": 1})
    assert hash(kind(1)) == hash(kind(1, c={"k": 1})) != hash(kind(2))
    assert kind(1) != (1, "x", {}, 3, (1, 2))
    assert kind(1).c is not kind(1).c
    assert dataclasses.replace(kind(1, e=7), a=5) == kind(5, e=7)


@BOTH
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_equal(kind: type[Any], again: Callable[[Any], Any]) -> None:
    one = kind(4, "y", {"k": 1}, 2.5, e=9)
    assert again(one) == one
    assert dataclasses.asdict(again(one)) == dataclasses.asdict(one)


@BOTH
def test_nothing_changes(kind: type[Any]) -> None:
    one = kind(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        one.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del one.a
    with pytest.raises((AttributeError, TypeError)):
        one.other = 2
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'a'"):
        kind()
    with pytest.raises(TypeError, match="unexpected keyword argument 'f'"):
        kind(1, f=())


def test_a_class_checks_its_values() -> None:
    assert Checked(3).half == 1.5
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_methods_of_a_class_are_kept() -> None:
    assert Named("a") == Named("A")
    assert hash(Named("a")) == hash(Named("A"))
    assert repr(Named("a")) == "a"


def test_one_field_and_none() -> None:
    assert One(math.nan) != One(float("nan"))
    same = One(math.nan)
    assert same == One(same.value), "identical values are equal, as they are in tuples"
    assert {One(1): 2}[One(1)] == 2
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert repr(Nothing()) == "Nothing()"
    match One(2):
        case One(value):
            assert value == 2


def test_dataclasses_may_inherit_from_frozen_ones() -> None:
    @dataclass(frozen=True)
    class Longer(One):
        unit: str = "s"

    assert Longer(1, "m") == Longer(1, "m") != One(1)
    with pytest.raises(TypeError, match="Twice: @frozen does not know dataclasses as bases"):

        @frozen
        class Twice(One):
            """A field more than its base."""

            unit: str = "s"


def test_fields_of_classes_are_refused() -> None:
    with pytest.raises(TypeError, match="Shared: @frozen knows neither ClassVar nor InitVar"):

        @frozen
        class Shared:
            """Has a field that no instance has."""

            a: int
            b: ClassVar[int] = 2


@frozen
class Once:
    """Compared before and after its method is compiled, with what all sorts of fields are."""

    a: int
    b: str = "x"
    c: dict[str, int] = field(default_factory=dict)
    e: int = field(default=3, kw_only=True)
    f: tuple[int, ...] = field(init=False, default=(1, 2))
    g: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "g", self.a + self.e)


def fresh() -> Any:
    """``Once``, of which no object was made yet."""
    namespace = {name: Once.__dict__[name] for name in ("__doc__", "__annotations__", "__module__", "__post_init__")}
    defaults = {one.name: one for one in dataclasses.fields(Once) if one.default is not dataclasses.MISSING}
    defaults |= {name: one for name in ("c", "g") for one in dataclasses.fields(Once) if one.name == name}
    return frozen(type("Once", (), {**namespace, **defaults}))


@pytest.mark.parametrize(
    ("values", "named"), [((1,), {}), ((1, "y", {"k": 1}), {"e": 4}), ((), {"a": 1, "c": {}, "b": "z"})]
)
def test_the_first_object_is_made_as_the_others(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    kind = fresh()
    first, *between, second = [kind(*values, **named) for _ in range(FEW + 2)]
    assert all(one == second for one in (first, *between))
    assert isinstance(vars(kind)["__init__"], FunctionType)
    assert first.c is not second.c or "c" in named or len(values) > 2
    assert (first.g, second.g) == (first.a + first.e,) * 2
    assert dataclasses.asdict(first) == dataclasses.asdict(Once(*values, **named))


@pytest.mark.parametrize(
    ("values", "named", "said"),
    [
        ((), {}, r"missing 1 required positional argument: 'a'"),
        ((1, "x", {}, 4), {}, r"takes from 2 to 4 positional arguments but 5 were given"),
        ((1,), {"a": 2}, r"got multiple values for argument 'a'"),
        ((1,), {"f": ()}, r"got an unexpected keyword argument 'f'"),
        ((1,), {"other": 2}, r"got an unexpected keyword argument 'other'"),
    ],
)
def test_the_first_object_is_refused_as_the_others(values: tuple[Any, ...], named: dict[str, Any], said: str) -> None:
    kind = fresh()
    for _ in range(2):
        with pytest.raises(TypeError, match=rf"^Once.__init__\(\) {said}$"):
            kind(*values, **named)


def test_defaults_that_could_change_are_refused() -> None:
    with pytest.raises(TypeError, match="Shared: the default of a could change; use default_factory"):

        @frozen
        class Shared:
            """All objects would have the same list."""

            a: list[int] = []  # noqa: RUF012  it is refused


def test_plain_classes_share_code_and_nothing_else() -> None:
    @frozen
    class First:
        x: int
        y: str = "y"

    @frozen
    class Second:
        name: int
        value: str = "v"

    for _ in range(FEW_PLAIN + 1):
        assert dataclasses.asdict(First(1)) == {"x": 1, "y": "y"}
        assert dataclasses.asdict(Second(value="w", name=2)) == {"name": 2, "value": "w"}
    own, other = vars(First)["__init__"], vars(Second)["__init__"]
    assert own.__code__.co_code == other.__code__.co_code
    assert list(inspect.signature(First).parameters.values())[1].default == "y"
    assert [*inspect.signature(Second).parameters] == ["name", "value"]
    with pytest.raises(TypeError, match=r"First\.__init__\(\) got an unexpected keyword argument '_0'"):
        First(_0=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Second\.__init__\(\) missing 1 required positional argument: 'name'"):
        Second(value="w")  # type: ignore[call-arg]
