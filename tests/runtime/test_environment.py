"""The environment is read into one value, where empty means absent."""

from __future__ import annotations

from tc.base.environment import Environment, environment


def test_variables_become_fields() -> None:
    read = Environment.read(
        {"TC_TARGET": "cpu", "TC_CC": "ccache gcc", "TC_DUMP": "dumps", "XDG_CACHE_HOME": "/c", "HOME": "/home/u"}
    )
    assert read == Environment(target="cpu", compiler="ccache gcc", dump="dumps", cache_home="/c")


def test_empty_and_missing_variables_are_absent() -> None:
    assert Environment.read({"TC_TARGET": "", "TC_CC": "", "TC_DUMP": ""}) == Environment()


def test_cache_home_follows_the_xdg_rules() -> None:
    assert Environment.read({"HOME": "/home/u"}).cache_home == "/home/u/.cache"
    assert Environment.read({"HOME": "/home/u", "XDG_CACHE_HOME": "relative"}).cache_home == "/home/u/.cache"
    assert Environment.read({"HOME": "relative"}).cache_home is None


def test_the_process_reads_it_once() -> None:
    assert environment() is environment()
