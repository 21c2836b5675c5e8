"""Groups with one member: systems that make one for every user have the mask 002, and such a group shares nothing."""

from __future__ import annotations

import os
import sys
from typing import Final

_ACCESS_LIST: Final = "system.posix_acl_access"


def is_private_group(number: int) -> bool:
    """Whether a group is this user's own and has no other member.

    It has the user's name, as user-private groups have, and the user's primary group is this one: that tells it from
    groups whose members no local file lists.  (The rule of OpenSSH in Debian, for the files that it trusts.)
    """
    # The two know nothing of systems without such groups.
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    if (group.gr_name, group.gr_gid) != (user.pw_name, user.pw_gid):
        return False
    members = {*group.gr_mem, *(one.pw_name for one in pwd.getpwall() if one.pw_gid == group.gr_gid)}
    return members == {user.pw_name}


def has_access_list(path: str | os.PathLike[str]) -> bool:
    """Whether a list names further users, whose rights stand where those of the group would."""
    if sys.platform != "linux":
        return True
    try:
        os.getxattr(path, _ACCESS_LIST)
    except OSError:
        return False
    return True
