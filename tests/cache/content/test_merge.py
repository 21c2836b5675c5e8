"""A merge depends neither on the order of its sources nor on how often it is done."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.merge import merge
from tc.cache.content.store import Store
from tests.cache.conftest import Places
from tests.cache.content_support import content
from tests.cache.samples import fill, filled, kernel, measurement, set_version, text, trial, variant
from tests.turns import every


@pytest.mark.parametrize("seed", every(3, range(3)))
def test_any_order_gives_the_same(places: Places, seed: int) -> None:
    sources = [places() for _ in range(3)]
    for number, source in enumerate(sources):
        # Clocks of several machines.
        ticks = map("{:04}".format, itertools.count(10 - number))
        fill(Store.open(source, now=ticks.__next__), 10 * seed + number)
    results = []
    for order in itertools.permutations(sources):
        target = places()
        merge(target, order)
        results.append((content(target), Reader.open(target).manifest()))
        assert verify(target) == ()
    assert all(result == results[0] for result in results)

    one_by_one = places()
    for source in (*sources, *sources):
        merge(one_by_one, [source])
    assert (content(one_by_one), Reader.open(one_by_one).manifest()) == results[0]


def test_merging_again_adds_nothing(places: Places) -> None:
    source, target = places(), places()
    fill(Store.open(source), 1)
    first = merge(target, [source]).added
    expected = content(source)
    assert first == {name: len(rows) for name, rows in expected.items() if name != "compilers"}
    assert set(merge(target, [source, source, target]).added.values()) == {0}
    assert content(target) == expected


def test_contradictions_are_settled_by_the_smaller_hash(places: Places) -> None:
    caches = [places() for _ in range(2)]
    variants = [replace(variant(), origin=f'"{n}"') for n in range(2)]
    for where, one in zip(caches, variants, strict=True):
        Store.open(where).add_variant(kernel(), one)
    smaller = min(variants, key=lambda one: one.digest)
    for where, other in (caches, caches[::-1]):
        merge(where, [other])
        assert Reader.open(where).variant(kernel().key, "{}") == smaller


def test_measurements_and_trials_add_up(places: Places) -> None:
    caches = [places() for _ in range(2)]
    for number, where in enumerate(caches):
        store = Store.open(where)
        store.add_variant(kernel(), variant())
        store.add_measurement(measurement(variant(), 1.0 + number))
        store.add_trials([trial(1), trial(2 + number)])
    added = merge(caches[0], caches[1:]).added
    assert added == {
        "kernels": 0, "variants": 0, "measurements": 1, "trials": 1, "runs": 0, "texts": 0, "natives": 0, "models": 0,
        "constants": 0, "plans": 0, "library_trials": 0,
    }  # fmt: skip


def test_seals_come_along_and_are_asked_for(places: Places) -> None:
    sealed, unsealed, target = places(), places(), places()
    fill(Store.open(sealed, key=b"secret"), 1)
    Store.open(unsealed).add_text(text(77))
    merge(target, [sealed], key=b"secret")
    assert content(target, b"secret") == content(sealed, b"secret")
    with pytest.raises(CacheError, match=r"nothing was merged: .*is not sealed; use the key"):
        merge(target, [unsealed], key=b"secret")
    with pytest.raises(CacheError, match=r"nothing was merged: .*bears the seal of another key.* \(and \d+ more\)"):
        merge(target, [sealed], key=b"another")
    assert content(target) == content(sealed)
    merge(unsealed, [sealed])
    merge(target, [unsealed])
    assert content(unsealed) == content(target)


def test_a_seal_is_not_lost_to_the_same_record_without(places: Places) -> None:
    sealed, unsealed = places(), places()
    Store.open(sealed, key=b"secret").add_text(text())
    Store.open(unsealed).add_text(text())
    merge(unsealed, [sealed])
    merge(sealed, [unsealed])
    for where in (sealed, unsealed):
        assert Reader.open(where, key=b"secret").text(text().key) == text()


def damage(path: Path) -> Path:
    """The last page, which holds rows."""
    content = bytearray(path.read_bytes())
    content[-2000:] = bytes(2000)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", ["foreign", "newer", "damaged", "missing"])
def test_what_is_not_sound_is_refused_before_anything_is_written(tmp_path: Path, kind: str) -> None:
    target, sound, bad = (filled(tmp_path / f"{n}.db", n) for n in range(3))
    match kind:
        case "foreign":
            bad.write_bytes(b"not a database at all, by no means" * 100)
        case "newer":
            set_version(bad, "9")
        case "damaged":
            damage(bad)
        case _:
            bad.unlink()
    before = target.read_bytes()
    for sources in ([sound, bad], [bad, sound]):
        with pytest.raises(CacheError, match=rf"nothing was merged: {bad}"):
            merge(target, sources)
    assert target.read_bytes() == before
    if bad.exists():
        with pytest.raises(CacheError, match=rf"nothing was merged: {bad}"):
            merge(bad, [sound])
    with pytest.raises(CacheError, match="nothing was merged"):
        merge(tmp_path / "new.db", [bad])
    assert not (tmp_path / "new.db").exists()
