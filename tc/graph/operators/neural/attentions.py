"""Attention: products of queries and keys, of which softmax makes weights of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Shape, number
from tc.graph.ir.values import Value
from tc.graph.operators.broadcasts import spread
from tc.graph.operators.texts import access, definition, literal, parameter


class Stage(Enum):
    """What becomes of the product of a query and a key, in order."""

    SCALED = "scaled"
    CAPPED = "capped"
    MASKED = "masked"
    WEIGHT = "weight"


@frozen
class Attention:
    """How keys are weighed.

    ``scale`` of the products; None for 1 over the root of the size of a head.  ``cap``: the bound that ``tanh`` gives
    them; 0 for none.  ``causal``: a query sees no key behind its own.  ``before``, ``behind``: how many keys it sees on
    either side of its own; None for all.  ``kind``: the type in which softmax is computed.  ``by_position``: positions
    come before heads in the result.  ``shown``: what is a result, too.  ``normal``: so are logarithms of the sums that
    softmax divides by, from which gradients begin; they are minus infinity where a query sees no key.
    """

    scale: float | None = None
    cap: float = 0.0
    causal: bool = False
    before: int | None = None
    behind: int | None = None
    kind: ScalarType = ScalarType.FLOAT32
    by_position: bool = False
    shown: Stage | None = None
    normal: bool = False


# Operands that may be there, in this order.  ``mask``: truths that let a key be seen, or numbers that are added; a key
# that it is too short for is not seen.  ``past_key``, ``past_value``: what comes before the keys and values.
# ``length``: how many keys each batch has.
EXTRAS: Final = ("mask", "past_key", "past_value", "length")
# Iterators: batch, group of heads that share keys, head in the group, query, key.
SCORE: Final = ("b", "g", "r", "l", "s")
ROW: Final = SCORE[:-1]


@frozen
class Attended:
    """The comprehension of ``how``, for queries (B,G,R,L,E), keys (B,G,N,E), values (B,G,N,F) and ``extras``."""

    how: Attention
    extras: tuple[str, ...] = ()

    def text(self, operands: Sequence[Value]) -> str:
        """The definition of the result ``Y``; with a past also ``keys`` and ``values``; ``Z``, what is shown; ``N``."""
        how, type = self.how, operands[0].type
        names = ("query", "key", "value", *self.extras)
        given = dict(zip(names, operands, strict=True))
        mask = mask_of(given, how)
        parameters = [
            mask.parameter if name == "mask" else parameter(operand.type, _EXTENTS[name], name)
            for name, operand in given.items()
        ]
        past = "past_key" in given
        key, value = ("keys", "values") if past else ("key", "value")
        statements = [
            *(_JOINED if past else ()),
            f"{access('product', SCORE)} +=! query(b, g, r, l, e) * {key}(b, g, s, e)",
            f"{access('logit', SCORE)} = {logit_of(how, given, mask, type)}",
            *_softmax(how, type),
            *_summed(type, f"{value}(b, g, s, f)", access("Y", "blgrf" if how.by_position else "bgrlf")),
        ]
        results = ["Y", key, value] if past else ["Y"]
        if how.shown is not None:
            results.append("Z")
            statements.append(f"{access('Z', SCORE)} = {type}({_stage(how, how.shown, type)})")
        if how.normal:
            results.append("N")
            statements.append(f"N(b, l, g, r) = {how.kind}({access('base', ROW)} + log({access('total', ROW)}))")
        return definition("attention", parameters, results, statements)


def attention(
    builder: Builder, how: Attention, query: Value, key: Value, value: Value, extras: Mapping[str, Value]
) -> tuple[Value, ...]:
    """The results of ``Attended`` for queries (B,H,L,E), of whose heads some in a row share those of keys."""
    heads, groups = (number(operand.shape[1], "the number of heads") for operand in (query, key))
    if groups == 0 or heads % groups:
        raise GraphError(f"{builder.origin}: {heads} heads of queries cannot share {groups} heads of keys")
    shared = (groups, heads // groups)
    others = {name: extras[name] for name in EXTRAS if name in extras}
    if "mask" in others:
        others["mask"] = split_heads(builder, others["mask"], shared)
    operator = Attended(how, tuple(others))
    operands = (split_heads(builder, query, shared), key, value, *others.values())
    result, *rest = builder.call(operator.text(operands), *operands, operator=operator)
    batch, rows, size = query.shape[0], query.shape[2], result.shape[-1]
    if how.normal:
        rest[-1] = builder.permute(builder.reshape(rest[-1], (batch, rows, heads)), (0, 2, 1))
    if how.shown is not None:
        at = -2 if how.normal else -1
        rest[at] = builder.reshape(rest[at], (batch, heads, rows, rest[at].shape[-1]))
    shape = (batch, rows, heads, size) if how.by_position else (batch, heads, rows, size)
    return (builder.reshape(result, shape), *rest)


def split_heads(builder: Builder, operand: Value, shared: tuple[int, int]) -> Value:
    """Queries or a mask, of four dimensions or fewer, whose heads are split into groups; one head stays one."""
    shape: Shape = (*(1,) * (4 - len(operand.shape)), *operand.shape)
    batch, heads, *rest = shape
    return builder.reshape(operand, (batch, *((1, 1) if heads == 1 else shared), *rest))


_EXTENTS: Final = {
    "query": "BGRLE",
    "key": "BGNE",
    "value": "BGNF",
    "past_key": "BGPE",
    "past_value": "BGPF",
    "length": "B",
}
_JOINED: Final = (
    "keys(b, g, p, e) = past_key(b, g, p, e)",
    "keys(b, g, s + P, e) = key(b, g, s, e)",
    "values(b, g, p, f) = past_value(b, g, p, f)",
    "values(b, g, s + P, f) = value(b, g, s, f)",
)


def logit_of(how: Attention, given: Mapping[str, Value], mask: Mask, type: ScalarType) -> str:
    """What softmax is taken of: the product, masked, as an expression with a clause."""
    capped, seen = _stage(how, Stage.CAPPED, type), [*_seen_keys(how, given), *mask.seen]
    logit = f"{capped} + {mask.added}" if mask.added else capped
    if seen:
        logit = f"{' && '.join(seen)} ? {logit} : {literal(-math.inf, how.kind)}"
    return f"{logit}{mask.where}"


def _seen_keys(how: Attention, given: Mapping[str, Value]) -> list[str]:
    """Conditions that a key is seen, apart from the mask.  Queries are the last of the positions that there are."""
    own = "l + P" if "past_key" in given else "l + length(b) - L" if "length" in given else "l"
    found = [f"s <= {own}"] if how.causal else []
    if how.before is not None:
        found.append(f"{own} - s <= {how.before}")
    if how.behind is not None:
        found.append(f"s - ({own}) <= {how.behind}")
    return [*found, "s < length(b)"] if "length" in given else found


@frozen
class Mask:
    """The parameter of a mask; conditions that it lets a key be seen; what it adds, with the clause that names it."""

    parameter: str = ""
    seen: tuple[str, ...] = ()
    added: str = ""
    where: str = ""


def mask_of(given: Mapping[str, Value], how: Attention) -> Mask:
    """The mask among operands of these names, if there is one."""
    if "mask" not in given:
        return Mask()
    mask, query, key = given["mask"], given["query"], given["key"]
    keys = key.shape[2] + (given["past_key"].shape[2] if "past_key" in given else 0)
    extents = ["B", "G", "R", "L", "N" if keys == key.shape[2] == mask.shape[-1] else "C"]
    declared, at = spread(mask, (*query.shape[:4], keys), "mask", SCORE, extents)
    read = access("mask", at)
    truths, nothing = mask.type is ScalarType.BOOL, literal(-math.inf, how.kind)
    value = read if truths or mask.type is how.kind else f"{how.kind}({read})"
    if mask.shape[-1] not in (1, keys):
        value = f"(s < C ? {value} : {'bool(0)' if truths else nothing})"
    if truths:
        return Mask(declared, (value,))
    return Mask(declared, (f"bias != {nothing}",), "bias", f" where bias = {value}")


def factor_of(how: Attention) -> str:
    """What products of queries and keys are multiplied by, as an expression."""
    return f"rsqrt({how.kind}(E))" if how.scale is None else literal(how.scale, how.kind)


def _stage(how: Attention, stage: Stage, type: ScalarType) -> str:
    """The product at a stage, as an expression."""
    wide = how.kind
    scale = factor_of(how)
    product = access("product", SCORE)
    scaled = f"{product if type is wide else f'{wide}({product})'} * {scale}"
    match stage:
        case Stage.SCALED:
            return scaled
        case Stage.CAPPED:
            bound = literal(how.cap, wide)
            return f"{bound} * tanh({scaled} / {bound})" if how.cap > 0 else scaled
        case Stage.MASKED:
            return access("logit", SCORE)
        case Stage.WEIGHT:
            return access("weight", SCORE)


def _softmax(how: Attention, type: ScalarType) -> list[str]:
    """Weights of keys; all of them are 0 where a query sees none."""
    logit, power, weight = (access(name, SCORE) for name in ("logit", "power", "weight"))
    top, base, total, share = (access(name, ROW) for name in ("top", "base", "total", "share"))
    wide = computation_type(type)
    return [
        f"{top} max=! {logit}",
        f"{base} = {top} == {literal(-math.inf, how.kind)} ? 0 : {top}",
        f"{power} = exp({logit} - {base})",
        f"{total} +=! {power}",
        f"{share} = {total} == 0 ? 0 : 1 / {total}",
        f"{weight} = {power} * {share}" if wide is how.kind else f"{weight} = {wide}({power} * {share})",
    ]


def _summed(type: ScalarType, value: str, result: str) -> list[str]:
    """The values by their weights; a half is rounded once."""
    term = f"{access('weight', SCORE)} * {value}"
    if not type.is_half:
        return [f"{result} +=! {term}"]
    return [f"O(b, g, r, l, f) +=! {term}", f"{result} = {type}(O(b, g, r, l, f))"]
