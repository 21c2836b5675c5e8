"""Which groups are a user's own: made-up users and groups, as files and directories list them."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Sequence
from pathlib import Path

import pytest

from tc.cache.format.private_group import has_access_list, is_private_group

ME = 1000


@pytest.mark.parametrize(
    ("group", "listed", "primary", "private"),
    [
        ("me", [], [], True),
        ("me", ["me"], [], True),
        ("me", ["other"], [], False),
        ("me", [], ["other"], False),
        ("users", [], [], False),
        ("users", ["me"], [], False),
    ],
)
def test_a_private_group_has_the_name_of_its_only_member(
    monkeypatch: pytest.MonkeyPatch, group: str, listed: list[str], primary: Sequence[str], private: bool
) -> None:
    users = [pwd.struct_passwd((name, "x", ME + n, 100, "", "/", "")) for n, name in enumerate(("me", *primary))]
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: users[0])
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group((group, "x", number, listed)))
    assert is_private_group(100) == private
    # Whose primary group is another one has not got this one from the system.
    assert not is_private_group(101)


def test_numbers_without_a_name_belong_to_no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert not is_private_group(os.getegid())


def test_access_lists_are_seen(tmp_path: Path) -> None:
    assert not has_access_list(tmp_path)
    # Version 2: the owner, the user 4321, the group, the mask, and others.
    entries = ((1, 7, 0xFFFFFFFF), (2, 7, 4321), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 5, 0xFFFFFFFF))
    packed = b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + number.to_bytes(4, "little")
        for tag, bits, number in entries
    )
    try:
        os.setxattr(tmp_path, "system.posix_acl_access", b"\x02\0\0\0" + packed)
    except OSError:
        pytest.skip("this file system keeps no access lists")
    assert has_access_list(tmp_path)
