"""The fast path of repeated calls on CUDA: arrays are recognized by fingerprints, and their addresses are launched."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeAlias

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.runtime.cuda.chosen_stream import chosen_stream
from tc.runtime.frameworks.arrays import address_of
from tc.runtime.frameworks.fingerprint import FingerprintFunction, fingerprint_function
from tc.runtime.views.view import Stream

if TYPE_CHECKING:
    from tc.dispatch.sites import CudaSite

Announcer: TypeAlias = Callable[..., object]
# What tells a call from others; its addresses by slot, 0 for absent results; for every output, the argument that it is,
# -1 for none; the streams of its arrays.
_Look: TypeAlias = tuple[tuple[Hashable, ...], list[int], list[int], list[Stream]]


@frozen
class CudaPlan:
    """What is to be done for calls of one kind.

    Slots are the arrays of a call: arguments, then results.  ``begins`` and ``ends``: of the bytes of every slot,
    counted from its first element; ``masks``: bits of its address that must be 0; all of them 0 for absent results.
    ``sources``: the slot of every buffer of the kernel.  ``sizes``: what the kernel is given behind its buffers.
    ``absent``: the slots of results that are to be made.  ``announce``: the slots of the others, and what is to be
    called with the caller's array before it changes.  ``site``: where the call was made; ``like``: the slot of the
    array whose allocator it asks, None where it asks none.
    """

    site: CudaSite
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    masks: tuple[int, ...]
    sources: tuple[int, ...]
    sizes: tuple[int, ...]
    absent: tuple[tuple[int, tuple[int, ...], ScalarType], ...]
    announce: tuple[tuple[int, Announcer], ...]
    like: int | None


class WarmCudaCalls:
    """The calls on CUDA of one definition or kernel that have plans; safe from many threads."""

    __slots__ = ("_fingerprints", "_plans")

    def __init__(self) -> None:
        self._plans: dict[tuple[Hashable, ...], CudaPlan] = {}
        # For the types of arrays that such calls brought.
        self._fingerprints: dict[type, FingerprintFunction] = {}

    @property
    def known(self) -> bool:
        """Whether there is a plan."""
        return bool(self._plans)

    def remember(self, arguments: tuple[object, ...], out: object, plan: CudaPlan) -> None:
        """Calls like this one follow the plan from now on, where all their arrays have fingerprints."""
        arrays = (*arguments, *_listed(out))
        for kind in set(map(type, arrays)):
            fingerprint = fingerprint_function(kind)
            if fingerprint is not None:
                self._fingerprints[kind] = fingerprint
        look = self._look(arrays, len(arguments))
        # Two kinds of arrays over the same memory look like different ones.
        if look is not None and _fits(plan, *look[1:3]):
            self._plans[look[0]] = plan

    def call(self, arguments: tuple[object, ...], out: object) -> object:
        """What the kernel makes, a result or a tuple of them; None if there is no plan for such arguments."""
        arrays = (*arguments, *_listed(out))
        look = self._look(arrays, len(arguments))
        if look is None:
            return None
        key, addresses, aliases, streams = look
        plan = self._plans.get(key)
        if plan is None or not _fits(plan, addresses, aliases):
            return None
        chosen = chosen_stream()
        stream = streams[0] if chosen is None else chosen
        ordered = streams.count(stream) == len(streams)
        if chosen is None and not ordered:  # they must wait for each other
            return None
        site = plan.site
        if plan.like is not None or not ordered or stream is not site.place.memory.stream:
            like = None if plan.like is None else arrays[plan.like]
            site = site.at(stream, like, () if ordered else arrays)
        if plan.absent:
            arrays = self._completed(plan, site, arrays, addresses)
        for slot, announce in plan.announce:
            announce(arrays[slot])
        site.launch([addresses[slot] for slot in plan.sources], plan.sizes)
        results = arrays[len(arguments) :]
        return results[0] if len(results) == 1 else results

    def _look(self, arrays: tuple[object, ...], arguments: int) -> _Look | None:
        """The fingerprint of a call; None where one of its arrays has none."""
        key: list[Hashable] = [arguments]
        addresses: list[int] = []
        streams: list[Stream] = []
        for array in arrays:
            if array is None:  # a result that the caller leaves to us
                key.append(None)
                addresses.append(0)
                continue
            function = self._fingerprints.get(type(array))
            fingerprint = None if function is None else function(array)
            if fingerprint is None:
                return None
            what, address, stream = fingerprint
            key.append(what)
            addresses.append(address)
            streams.append(stream)
        aliases = []
        for slot in range(arguments, len(arrays)):
            same = addresses.index(addresses[slot])
            aliases.append(same if same < arguments and key[1 + same] == key[1 + slot] else -1)
        return ((*key, *aliases), addresses, aliases, streams) if streams else None

    def _completed(
        self, plan: CudaPlan, site: CudaSite, arrays: tuple[object, ...], addresses: list[int]
    ) -> tuple[object, ...]:
        """All arrays, with results of ours where the caller has none; their addresses are told."""
        unnamed = len(plan.begins) - len(arrays)
        completed = [*arrays, *[None] * unnamed]
        addresses += [0] * unnamed
        for slot, shape, type in plan.absent:
            made = site.allocator(shape, type)()
            completed[slot] = made
            addresses[slot] = self._address(made)
        return tuple(completed)

    def _address(self, made: object) -> int:
        function = self._fingerprints.get(type(made))
        fingerprint = None if function is None else function(made)
        return address_of(made) if fingerprint is None else fingerprint[1]


def _listed(out: object) -> tuple[object, ...]:
    return () if out is None else out if isinstance(out, tuple) else (out,)


def _fits(plan: CudaPlan, addresses: list[int], aliases: list[int]) -> bool:
    """Whether elements lie where they may, and no output has a byte in common with another array."""
    for address, mask in zip(addresses, plan.masks, strict=False):
        if address & mask:
            return False
    slot = len(addresses) - len(aliases)
    for same in aliases:
        begin, end = addresses[slot] + plan.begins[slot], addresses[slot] + plan.ends[slot]
        for other in range(slot):
            apart = end <= addresses[other] + plan.begins[other] or addresses[other] + plan.ends[other] <= begin
            if not apart and other != same:
                return False
        slot += 1
    return True
