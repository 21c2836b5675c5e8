"""Proof of promotions: a promoted access finds in its buffer the value of the element that it stands for.

That conflicting accesses run in program order is proven elsewhere, for the elements of tensors.  Copies at the
beginning and the end of an iteration of the prefix (the loops around the buffer) preserve that, if for every buffer:

- the layout maps the place of every access back to the element that it stands for;
- an array holds an element in one place only, and no two places overlap;
- what is read was loaded, or written before in the same iteration, if that is in one step of all blocks;
- what is written is stored afterwards, and nothing else is; unless the tensor is a temporary of which every access goes
  to the buffer;
- in the same iteration, no access bypasses the buffer to reach a promoted element, and no thread reaches an element
  that another thread writes through an array of its own;
- in the loops, each array belongs to exactly one value of the prefix, and the printed local subscripts are right.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from functools import reduce

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.isl.original_order import runs_later
from tc.polyhedral.analysis.functions import function_map
from tc.polyhedral.analysis.local_subscripts import local_places
from tc.polyhedral.execution.execution import Execution, LocalSubscripts
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text, point_text
from tc.polyhedral.ir.loops import Sharing
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop, ScopStatement
from tc.polyhedral.proof.steps import outlives_steps


def check_places(scop: Scop) -> Counterexample | None:
    """The first failure among all promotions that is one in every execution; None if there is none."""
    for promotion in scop.promotions:
        found = _check_layout(scop, promotion) or _check_elements(scop, promotion) or _check_copies(scop, promotion)
        if found is not None:
            return found
    return None


def check_scopes(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first failure among all promotions that is one in this execution; None if there is none."""
    for promotion in scop.promotions:
        found = (
            _check_scopes(scop, promotion, execution)
            or _check_bypass(scop, promotion, execution)
            or _check_owners(scop, promotion, execution)
        )
        if found is not None:
            return found
    return None if execution.locals is None else _check_local_subscripts(scop, execution.locals)


def _uses(scop: Scop, promotion: Promotion) -> list[tuple[ScopStatement, PromotedAccess]]:
    """Accesses to the buffer in program order; a statement reads before it writes."""
    name = promotion.buffer.name
    return [
        (statement, access)
        for statement in scop.statements
        for access in sorted(statement.promoted, key=lambda access: access.writes)
        if access.buffer == name
    ]


def _check_layout(scop: Scop, promotion: Promotion) -> Counterexample | None:
    """The tensor's type; and every stride must step over all that the smaller ones reach.

    What is in lanes has as many arrays as there are threads: the last dimension moves nothing.
    """
    types = {isl_name(tensor.name): tensor.layout.type for tensor in (*scop.buffers, *scop.temporaries)}
    layout, reach = promotion.buffer.layout, 0
    gathered = promotion.gathered
    tensor = promotion.tensor if gathered is None else isl_name(gathered.read.tensor)
    if layout.type is not types[tensor]:
        return Counterexample(Violation.WRONG_TYPE, promotion.buffer.name)
    dimensions = list(zip(layout.strides, layout.shape, strict=True))
    if promotion.buffer.sharing is Sharing.LANES and dimensions.pop()[0] != 0:
        return Counterexample(Violation.OVERLAPPING, f"{promotion.buffer.name}{layout.shape}: {layout.strides}")
    for stride, extent in sorted(dimensions):
        if extent > 1 and stride <= reach:
            return Counterexample(Violation.OVERLAPPING, f"{promotion.buffer.name}{layout.shape}: {layout.strides}")
        reach += stride * (extent - 1)
    return None


def _check_elements(scop: Scop, promotion: Promotion) -> Counterexample | None:
    """Accesses find their elements, and one array holds an element once."""
    used = isl.Set.empty(promotion.elements.domain().get_space())
    for _, access in _uses(scop, promotion):
        found = access.location.apply_range(promotion.elements)
        if not found.is_equal(access.element):
            wrong = found.subtract(access.element).union(access.element.subtract(found))
            return Counterexample(Violation.WRONG_ELEMENT, pair_text(isl.UnionMap.from_map(wrong)))
        used = used.union(access.location.range())
    if _has_one_place_each(promotion):
        return None
    places = promotion.elements.intersect_domain(used)
    same = places.apply_range(places.reverse())
    for dimension in range(promotion.elements.dim(isl.dim_type.in_) - promotion.elements.dim(isl.dim_type.out)):
        same = same.equate(isl.dim_type.in_, dimension, isl.dim_type.out, dimension)
    once = isl.Map.identity(same.get_space())
    if same.is_subset(once):
        return None
    return Counterexample(Violation.WRONG_ELEMENT, pair_text(isl.UnionMap.from_map(same.subtract(once))))


def _has_one_place_each(promotion: Promotion) -> bool:
    """Whether an array would hold every element once if all places were used, which is less to ask."""
    depth = promotion.elements.dim(isl.dim_type.in_) - promotion.elements.dim(isl.dim_type.out)
    in_one_array = promotion.elements.move_dims(isl.dim_type.param, 0, isl.dim_type.in_, 0, depth)
    return bool(in_one_array.is_injective())


def _check_copies(scop: Scop, promotion: Promotion) -> Counterexample | None:
    nothing = isl.Set.empty(promotion.elements.domain().get_space())
    available, written, stored = nothing, nothing, nothing
    if outlives_steps(scop, promotion):
        unwritten = _read_too_early(scop, promotion)
        if unwritten is not None:
            return Counterexample(Violation.NOT_LOADED, _place(unwritten))
    for statement, access in _uses(scop, promotion):
        places = access.location.range()
        if statement.name == promotion.stores:
            if not places.is_subset(written):
                return Counterexample(Violation.STORED_UNWRITTEN, _place(places.subtract(written)))
            stored = stored.union(places)
            continue
        if access.reads and not places.is_subset(available):
            return Counterexample(Violation.NOT_LOADED, _place(places.subtract(available)))
        if access.writes:
            available, stored = available.union(places), stored.subtract(places)
            written = written if statement.name == promotion.loads else written.union(places)
    if written.is_subset(stored) or replaces_tensor(scop, promotion):
        return None
    return Counterexample(Violation.NOT_STORED, _place(written.subtract(stored)))


def _read_too_early(scop: Scop, promotion: Promotion) -> isl.Set | None:
    """Places of arrays that several steps of blocks use, which are read before any earlier step wrote them.

    A statement further up in the program is earlier only in the same step and those behind it.
    """
    order = {statement.name: number for number, statement in enumerate(scop.statements)}
    uses = _uses(scop, promotion)
    for statement, access in uses:
        if not access.reads or statement.name == promotion.stores:
            continue
        missing = access.location
        for writer, written in uses:
            if not written.writes or missing.is_empty():
                continue
            if writer.name == promotion.loads:
                missing = missing.subtract_range(written.location.range())
                continue
            later = runs_later(
                statement.domain.get_space(),
                statement.blocks,
                writer.domain.get_space(),
                writer.blocks,
                is_behind=order[statement.name] > order[writer.name],
            )
            missing = missing.subtract(later.apply_range(written.location))
        if not missing.is_empty():
            return missing.range()
    return None


def replaces_tensor(scop: Scop, promotion: Promotion) -> bool:
    """Whether the tensor is a temporary of which every access goes to the buffer."""
    tensor = promotion.tensor
    if all(isl_name(temporary.name) != tensor for temporary in scop.temporaries):
        return False
    for statement in scop.statements:
        through = [access for access in statement.promoted if access.buffer == promotion.buffer.name]
        for relations, elements in (
            (statement.reads, [access.element for access in through if access.reads]),
            (statement.writes, [access.element for access in through if access.writes]),
        ):
            touching = [r for r in relations if r.get_tuple_name(isl.dim_type.out) == tensor]
            if not all(any(relation.is_equal(element) for element in elements) for relation in touching):
                return False
    return True


def _check_bypass(scop: Scop, promotion: Promotion, execution: Execution) -> Counterexample | None:
    """Accesses below one allocation to one element, one through the buffer and one past it, at least one writing."""
    copies = (promotion.loads, promotion.stores)
    through = [(s, a) for s, a in _uses(scop, promotion) if s.name not in copies]
    tensor = promotion.tensor
    nowhere = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    name = promotion.buffer.name
    inside = execution.scoped.get(name, nowhere.domain())
    for statement in scop.statements:
        if inside.extract_set(statement.domain.get_space()).plain_is_empty():
            continue
        own = [access.element for user, access in through if user is statement]
        past = [(read, False) for read in statement.reads] + [(write, True) for write in statement.writes]
        for relation, writes in past:
            if relation.get_tuple_name(isl.dim_type.out) != tensor or any(relation.is_equal(e) for e in own):
                continue
            arrays = execution.rounds if execution.places else execution.scopes
            scopes = arrays(name, {statement.name, *(user.name for user, _ in through)}) or nowhere
            here = scopes.intersect_domain(isl.UnionSet.from_set(statement.domain))
            for user, access in through:
                if not (writes or access.writes):
                    continue
                pairs = isl.UnionMap.from_map(relation.apply_range(access.element.reverse()))
                there = scopes.intersect_domain(isl.UnionSet.from_set(user.domain))
                found = pairs.intersect(here.apply_range(there.reverse()))
                if not found.is_empty():
                    return Counterexample(Violation.BYPASSED, pair_text(found))
    return None


def _check_owners(scop: Scop, promotion: Promotion, execution: Execution) -> Counterexample | None:
    """Accesses in one round to one element through the arrays of different threads, at least one writing.

    What one of them writes there the other one would not see: copies are at the beginning and the end.
    """
    name = promotion.buffer.name
    through = [(s, a) for s, a in _uses(scop, promotion) if s.name not in (promotion.loads, promotion.stores)]
    shared = promotion.buffer.sharing is Sharing.BLOCK or not execution.places
    if shared or not any(access.writes for _, access in through):
        return None
    holding: list[tuple[isl.Map, bool]] = []
    for _, access in sorted(through, key=lambda use: not use[1].writes):
        if not any(access.element.plain_is_equal(element) for element, _ in holding):
            holding.append((access.element, access.writes))
    none = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))

    def reached(arrays: isl.UnionMap, *, writing: bool) -> isl.UnionMap:
        elements = (isl.UnionMap.from_map(element.reverse()) for element, writes in holding if writes is writing)
        own = (element.apply_range(arrays) for element in elements)
        return reduce(isl.UnionMap.union, own, none)

    names = {statement.name for statement in scop.statements}
    arrays = execution.scopes(name, names) or none
    if _is_single_valued(reached(arrays, writing=True).union(reached(arrays, writing=False)).coalesce()):
        return None  # in all rounds together, which is less to ask
    held = (execution.rounds(name, names) or none).range_product(arrays)  # { instance -> [round -> array] }
    written = reached(held, writing=True).uncurry().coalesce()
    every = written.union(reached(held, writing=False).uncurry())
    every = every.intersect_domain(written.domain()).coalesce()  # { [element -> round] -> array }
    return None if _is_single_valued(every) else Counterexample(Violation.BYPASSED, f"{name} on several threads")


def _check_local_subscripts(scop: Scop, places: Items[LocalSubscripts]) -> Counterexample | None:
    """Wherever an access happens, its guards included, the loops must use the subscripts of its place."""
    wanted = {statement.name: list(local_places(statement)) for statement in scop.statements}
    for place in places:
        begin = 0
        for subscripts in wanted.get(place.instances.get_tuple_name(isl.dim_type.out), ()):
            end = begin + subscripts.dim(isl.dim_type.out)
            values = place.subscripts[begin:end]
            right = place.instances.apply_range(subscripts)
            found = function_map(values, place.instances.get_space().domain())
            found = found if begin + len(values) == end else isl.Map.empty(right.get_space())
            # isl says in less than half the time that nothing is left than what is.
            if not right.is_subset(found):
                pairs = place.instances.reverse().apply_range(right.subtract(found))
                return Counterexample(Violation.WRONG_ELEMENT, pair_text(isl.UnionMap.from_map(pairs)))
            begin = end
    return None


def _check_scopes(scop: Scop, promotion: Promotion, execution: Execution) -> Counterexample | None:
    """One array for one value of the prefix, around every access, and as large as the buffer."""
    for buffer in execution.allocated:
        if buffer.name == promotion.buffer.name and buffer != promotion.buffer:
            return Counterexample(Violation.WRONG_SCOPE, f"{buffer} instead of {promotion.buffer}")
    prefixes: list[isl.Map] = []
    more: list[isl.Map] = []
    for statement, access in _uses(scop, promotion):
        if access.rotation != promotion.rotation:
            return Counterexample(Violation.WRONG_SCOPE, f"{access.rotation} instead of {promotion.rotation}")
        if access.panels != promotion.panels:
            return Counterexample(Violation.WRONG_SCOPE, f"{access.panels} instead of {promotion.panels}")
        prefix = access.prefix
        if access.rotation is not None:  # all iterations of the last member share one array
            prefix = prefix.project_out(isl.dim_type.out, access.depth - 1, 1)
        if any(prefix.plain_is_equal(other) for other in prefixes):
            continue  # the same statement, once more
        prefixes.append(prefix)
        more.append(prefix.remove_unknown_divs().intersect_domain(statement.domain))
    # What holds of more prefixes than have an access holds of those; isl may take minutes to say which ones have one.
    return _check_arrays(promotion, execution, more) and _check_arrays(promotion, execution, prefixes)


def _check_arrays(promotion: Promotion, execution: Execution, prefixes: Items[isl.Map]) -> Counterexample | None:
    """One array for one value of the prefix; ``prefixes``: ``{ instance -> [prefix] }`` of every access."""
    nowhere = isl.UnionMap.empty(promotion.elements.get_space().params())
    users = {str(prefix.get_tuple_name(isl.dim_type.in_)) for prefix in prefixes}
    scopes = execution.scopes(promotion.buffer.name, users) or nowhere
    inside = execution.scoped.get(promotion.buffer.name, nowhere.domain())
    arrays = nowhere
    for prefix in prefixes:
        own = isl.UnionMap.from_map(prefix)
        within = inside.extract_set(prefix.get_space().domain())
        instances = prefix.domain()
        if not (instances.plain_is_equal(within) or instances.is_subset(within)):
            return Counterexample(Violation.WRONG_SCOPE, pair_text(own.subtract_domain(inside)))
        arrays = arrays.union(own.reverse().apply_range(scopes))
    arrays = arrays.coalesce()
    if not (_is_single_valued(arrays) and _is_single_valued(arrays.reverse())):
        return Counterexample(Violation.WRONG_SCOPE, pair_text(arrays))
    return None


def _is_single_valued(relation: isl.UnionMap) -> bool:
    """``is_single_valued``, where isl need not compare all pieces with each other if their affine hull is."""
    return relation.affine_hull().is_single_valued() or relation.is_single_valued()


def _place(places: isl.Set) -> str:
    return point_text(isl.UnionSet.from_set(places))
