"""The plans of graphs in a cache as a table, a line for each."""

from __future__ import annotations

from typing import Final

from tc.base.counted import bytes_text
from tc.cache.content.contents import Contents
from tc.cache.content.plan_needs import listed
from tc.cache.format.tables import PLAN_TITLES, VARIANT_KERNELS
from tc.commands.contents.terminal import shortened, table

_HEADINGS: Final = ("graph", "target", "threads", "kernels", "size")
_LONGEST: Final = 60


def plans_listing(contents: Contents, target: str | None = None) -> str | None:
    """The table of the plans for a target, or for all, sorted by graph; None if there is none.

    Those that lack kernels, and are prepared anew when they are asked for, say so.
    """
    here = {str(row["kernel"]) for row in contents.session.rows(VARIANT_KERNELS)}
    rows = []
    for row in contents.session.rows(PLAN_TITLES):
        kernels = listed(str(row["kernels"]))
        lacking = f" ({len(kernels - here)} missing)" if kernels - here else ""
        name, count = f"{row['target']}:{row['architecture']}", f"{len(kernels)}{lacking}"
        if target in (None, row["target"], name):
            title, where = shortened(str(row["title"]), _LONGEST), shortened(name, _LONGEST)
            rows.append((title, where, str(row["threads"]), count, bytes_text(int(str(row["size"])))))
    return table(_HEADINGS, sorted(rows)) if rows else None
