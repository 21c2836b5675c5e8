"""Recurrent cells over sequences: RNN, GRU and LSTM, as blocks that run step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.neural.activations import activations
from tc.graph.operators.texts import access, definition, literal, parameter

# Iterators: step, element of the batch, gate, number of the state, number of what it is computed from.
_STATE: Final = ("b", "j")
_GATES: Final = ("b", "q", "j")


@frozen
class _Pass:
    """One direction: ``index`` says which, ``suffix`` ends the names of what it has for itself.

    ``functions``: its activations, formulas of ``x``.  ``clip``: the bound of their operands, or nothing.  ``given``:
    names of the operands that there are.
    """

    index: int
    backward: bool
    suffix: str
    functions: tuple[str, ...]
    clip: str
    given: frozenset[str]

    def own(self, name: str, subscripts: Sequence[object] = _STATE) -> str:
        """An element of a tensor of its own."""
        return access(f"{name}{self.suffix}", subscripts)

    @property
    def time(self) -> str:
        """The place in the sequences at step ``t``."""
        return "T - 1 - t" if self.backward else "t"

    def gate(self, number: int, *, state: bool = True, bias: Sequence[int] = (0, 1)) -> str:
        """What a gate gets from the sequences, and from the ``state``, with its biases for these."""
        found = [self.own("from_x", [self.time, "b", number, "j"])]
        found += [self.own("from_state", ["b", number, "j"])] if state else []
        found += [f"bias({self.index}, {which}, {number}, j)" for which in bias if "bias" in self.given]
        return " + ".join(found)

    def peephole(self, number: int, cell: str) -> str:
        """What a gate of an LSTM gets from the cell, if anything."""
        return f" + peephole({self.index}, {number}, j) * {cell}" if "peephole" in self.given else ""

    def active(self, function: int, operand: str) -> tuple[str, str]:
        """An activation, with the clause that names its operand."""
        bounded = f"min(max({operand}, -{self.clip}), {self.clip})" if self.clip else operand
        return self.functions[function], f" where x = {bounded}"

    def updated(self, name: str, value: str, clause: str = "") -> str:
        """The statement for a state, which stays when a sequence has ended."""
        state = self.own(name)
        guarded = f"{self.time} < length(b) ? {value} : {state}" if "length" in self.given else value
        return f"{state} = {guarded}{clause}"

    def named(self, name: str, function: int, operand: str) -> str:
        """The statement for a tensor that an activation makes."""
        value, clause = self.active(function, operand)
        return f"{self.own(name)} = {value}{clause}"


# The statements of a step.
Step: TypeAlias = "Callable[[Operation, _Pass], list[str]]"


def _from_state(one: _Pass, gates: str = "") -> str:
    """The products of the state with the matrices of gates."""
    product = f"{one.own('state', ['b', 'k'])} * R({one.index}, q, j, k)"
    return f"{one.own('from_state', _GATES)} +=! {product}{gates}"


def _rnn(_operation: Operation, one: _Pass) -> list[str]:
    return [_from_state(one), one.updated("state", *one.active(0, one.gate(0)))]


def _gru(operation: Operation, one: _Pass) -> list[str]:
    update, reset, hidden, state = (one.own(name) for name in ("update", "reset", "hidden", "state"))
    gates = [one.named("update", 0, one.gate(0)), one.named("reset", 0, one.gate(1))]
    bias = f" + bias({one.index}, 1, 2, j)" if "bias" in one.given else ""
    if operation.integer("linear_before_reset", 0):
        product = one.own("from_state", ["b", 2, "j"])
        candidate = f"{one.gate(2, state=False, bias=(0,))} + {reset} * ({product}{bias})"
        steps = [_from_state(one), *gates]
    else:
        kept = one.own("kept", ["b", "k"])
        candidate = f"{one.gate(2, state=False)} + {one.own('from_kept')}"
        steps = [
            _from_state(one, " where q in 0:2"),
            *gates,
            f"{one.own('kept')} = {reset} * {state}",
            f"{one.own('from_kept')} +=! {kept} * R({one.index}, 2, j, k)",
        ]
    steps.append(one.named("hidden", 1, candidate))
    return [*steps, one.updated("state", f"(1 - {update}) * {hidden} + {update} * {state}")]


def _lstm(operation: Operation, one: _Pass) -> list[str]:
    names = ("input", "forget", "candidate", "output", "cell", "next")
    gate_in, forget, candidate, out, cell, new = (one.own(name) for name in names)
    coupled = bool(operation.integer("input_forget", 0))
    value, clause = one.active(2, new)
    return [
        _from_state(one),
        one.named("input", 0, one.gate(0) + one.peephole(0, cell)),
        f"{forget} = 1 - {gate_in}" if coupled else one.named("forget", 0, one.gate(2) + one.peephole(2, cell)),
        one.named("candidate", 1, one.gate(3)),
        f"{new} = {forget} * {cell} + {gate_in} * {candidate}",
        one.named("output", 0, one.gate(1) + one.peephole(1, new)),
        one.updated("state", f"{out} * ({value})", clause),
        one.updated("cell", new),
    ]


# The operands behind the sequences `X` and the matrices `W` and `R`, by their places.
_PLACES: Final = {"bias": 3, "length": 4, "first_state": 5, "first_cell": 6, "peephole": 7}


def _recurrence(name: str, gates: int, defaults: Sequence[str], states: Sequence[str], step: Step) -> Rule:
    """A cell with so many gates, activations and states, the first of which is the result of each step."""

    def rule(operation: Operation) -> Sequence[Value]:
        given = _operands(operation, gates)
        type = given["X"].type
        directions = _passes(operation, defaults, frozenset(given), computation_type(type))
        wanted = [bool(result) for result in [*operation.results, "", "", ""][: 1 + len(states)]]
        batched = bool(operation.integer("layout", 0))
        results = [result for result, needed in zip(["Y", *(f"Y_{s}" for s in states)], wanted, strict=True) if needed]
        statements = []
        for one in directions:
            statements += _before(one, states, computation_type(type), batched)
            steps = step(operation, one)
            if wanted[0]:
                state = f"{one.time} < length(b) ? {one.own('state')} : 0" if "length" in given else one.own("state")
                at = ["b", one.time, one.index, "j"] if batched else [one.time, one.index, "b", "j"]
                steps.append(f"{access('Y', at)} = {type}({state})")
            statements += ["for t in 0:T {", *(f"    {statement}" for statement in steps), "}"]
            last = ["b", one.index, "j"] if batched else [one.index, "b", "j"]
            statements += [f"{access(f'Y_{s}', last)} = {type}({one.own(s)})" for s in states if f"Y_{s}" in results]
        text = definition(name, _parameters(given, batched), results, statements)
        found = iter(operation.call(text, *given.values()))
        first = next(iter(given.values()))
        return [next(found) if needed else first for needed in wanted]

    return rule


def _operands(operation: Operation, gates: int) -> dict[str, Value]:
    """The operands by name; the gates of matrices and biases have a dimension of their own."""
    builder = operation.builder
    found = {name: operation.operand(index) for index, name in enumerate("XWR")}
    found |= {name: value for name, place in _PLACES.items() if (value := operation.optional(place)) is not None}
    count, size = found["W"].shape[0], found["R"].shape[2]
    shapes = {
        "W": (count, gates, size, found["W"].shape[2]),
        "R": (count, gates, size, size),
        "bias": (count, 2, gates, size),
        "peephole": (count, 3, size),
    }
    return {name: builder.reshape(value, shapes.get(name, value.shape)) for name, value in found.items()}


def _parameters(given: Mapping[str, Value], batched: bool) -> list[str]:
    count = given["W"].shape[0]
    own: dict[str, Sequence[object]] = {
        "X": "BTI" if batched else "TBI",
        "W": (count, given["W"].shape[1], "H", "I"),
        "R": (count, given["W"].shape[1], "H", "H"),
        "bias": (count, 2, given["W"].shape[1], "H"),
        "length": "B",
        "peephole": (count, 3, "H"),
    }
    first = ("B", count, "H") if batched else (count, "B", "H")
    return [parameter(value.type, own.get(name, first), name) for name, value in given.items()]


def _passes(operation: Operation, defaults: Sequence[str], given: frozenset[str], wide: ScalarType) -> list[_Pass]:
    """The directions, each with its activations."""
    direction = operation.text("direction", "forward").lower()
    if direction not in ("forward", "reverse", "bidirectional"):
        raise operation.error(f"`direction` is {direction!r}, and must be forward, reverse or bidirectional")
    both = direction == "bidirectional"
    count = operation.operand(1).shape[0]
    if count != 1 + both:
        raise operation.error(f"`direction` is {direction!r}, and `W` has {count} matrices")
    functions = activations(operation, [*defaults] * (1 + both), wide)
    clip = literal(operation.number("clip"), wide) if "clip" in operation.attributes else ""
    found = []
    for index, suffix in enumerate(("_forward", "_backward") if both else ("",)):
        own = functions[index * len(defaults) : (index + 1) * len(defaults)]
        found.append(_Pass(index, direction == "reverse" or index == 1, suffix, tuple(own), clip, given))
    return found


def _before(one: _Pass, states: Sequence[str], wide: ScalarType, batched: bool) -> list[str]:
    """What the steps begin with: the products of all of the sequences, and the first states."""
    x = "X(b, t, k)" if batched else "X(t, b, k)"
    found = [f"{one.own('from_x', ['t', *_GATES])} +=! {x} * W({one.index}, q, j, k)"]
    at = ["b", one.index, "j"] if batched else [one.index, "b", "j"]
    for state in states:
        given = f"first_{state}" in one.given
        value = f"{wide}({access(f'first_{state}', at)})" if given else f"{wide}(0) where b in 0:B, j in 0:H"
        found.append(f"{one.own(state)} = {value}")
    return found


RULES: Final[dict[str, Rule]] = {
    "GRU": _recurrence("gru", 3, ("Sigmoid", "Tanh"), ("state",), _gru),
    "LSTM": _recurrence("lstm", 4, ("Sigmoid", "Tanh", "Tanh"), ("state", "cell"), _lstm),
    "RNN": _recurrence("rnn", 1, ("Tanh",), ("state",), _rnn),
}
