"""Where nodes come from in the user's code."""

from __future__ import annotations

import re

from torch import fx


def origin_of(node: fx.Node) -> str:
    """The operator of a node, and the line of the user's code that it comes from."""
    place = place_of(node)
    return f"{node.target}, {place}" if place else str(node.target)


def place_of(node: fx.Node) -> str:
    """The line of the user's code that a node comes from, as in ``model.py:12``; empty if there is none."""
    trace = str(node.meta.get("stack_trace") or "")
    found = re.findall(r'File "([^"]+)", line (\d+)', trace)
    return ":".join(found[-1]) if found else ""
