"""Exactly one maker per key; failures let others try; a fork does not wait for the parent's threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tc.base.once import Once
from tests.programs import run
from tests.waiting import PATIENCE

THREADS = 16


def constant(value: object) -> Callable[[], object]:
    return lambda: value


def test_each_value_is_made_once() -> None:
    once: Once[int, object] = Once()
    made: list[int] = []
    start, asking, asked = threading.Barrier(THREADS), threading.Condition(), Counter[int]()

    def ask(key: int) -> object:
        def make() -> object:
            made.append(key)
            with asking:  # nothing is made before all have asked for it
                assert asking.wait_for(lambda: asked[key] == THREADS, PATIENCE)
            return object()

        with asking:
            asked[key] += 1
            asking.notify_all()
        return once.get(key, make)

    def ask_all() -> list[object]:
        start.wait()
        return [ask(key) for key in range(50)]

    with ThreadPoolExecutor(THREADS) as threads:
        results = [future.result(PATIENCE) for future in [threads.submit(ask_all) for _ in range(THREADS)]]
    assert sorted(made) == list(range(50))
    assert all(result == results[0] for result in results)


def test_keys_do_not_wait_for_each_other() -> None:
    once: Once[str, str] = Once()

    def make_outer() -> str:
        with ThreadPoolExecutor(1) as thread:
            return "outer of " + thread.submit(once.get, "inner", lambda: "inner").result(PATIENCE)

    assert once.get("outer", make_outer) == "outer of inner"


def test_a_failure_reaches_its_maker_and_waiters_try_themselves() -> None:
    once: Once[str, str] = Once()
    making, fail = threading.Event(), threading.Event()

    def break_down() -> str:
        making.set()
        assert fail.wait(PATIENCE)
        raise ValueError("no luck")

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(once.get, "key", break_down)
        assert making.wait(PATIENCE)
        asking = threading.Barrier(4)

        def ask() -> str:
            asking.wait(PATIENCE)
            return once.get("key", lambda: "made")

        waiting = [threads.submit(ask) for _ in range(3)]
        asking.wait(PATIENCE)
        assert not any(future.done() for future in waiting)
        fail.set()
        with pytest.raises(ValueError, match="no luck"):
            first.result(PATIENCE)
        assert [future.result(PATIENCE) for future in waiting] == ["made"] * 3


def test_after_a_failure_the_key_is_free() -> None:
    once: Once[str, int] = Once()
    for error in (ValueError, KeyboardInterrupt):

        def fail(error: type[BaseException] = error) -> int:
            raise error

        with pytest.raises(error):
            once.get("key", fail)
    assert once.get("key", lambda: 7) == 7
    assert once.get("key", lambda: 8) == 7


def test_falsy_values_are_values() -> None:
    once: Once[str, object] = Once()
    for key, value in (("zero", 0), ("empty", ""), ("none", None)):
        assert once.get(key, constant(value)) is value
        assert once.get(key, object) is value


def test_the_child_of_a_fork_makes_what_the_parent_was_making_and_keeps_what_it_had() -> None:
    run(
        """
import os, threading
from concurrent.futures import ThreadPoolExecutor
from tc.base.once import Once

once, making, finish = Once(), threading.Event(), threading.Event()
once.get("old", lambda: "parent's")

def make():
    making.set()
    finish.wait()
    return "parent's"

thread = threading.Thread(target=once.get, args=("new", make))
thread.start()
making.wait()
child = os.fork()
if child == 0:
    made, start = [], threading.Barrier(8)
    def ask():
        start.wait()
        return once.get("new", lambda: made.append(1) or "child's")
    with ThreadPoolExecutor(8) as threads:
        futures = [threads.submit(ask) for _ in range(8)]
        assert {future.result() for future in futures} == {"child's"}
    assert made == [1]
    assert once.get("old", lambda: "child's") == "parent's"
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
finish.set()
thread.join()
assert once.get("new", lambda: "second") == "parent's"
"""
    )
