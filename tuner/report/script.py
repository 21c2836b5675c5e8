"""The script of the page: sections unfold when a link leads to them, and all of them for the printer."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

SCRIPT: Final = """
"use strict";
const reveal = () => {
  const section = location.hash && document.getElementById(location.hash.slice(1));
  if (section) { section.open = true; section.scrollIntoView(); }
};
const unfold = () => document.querySelectorAll("details.kernel").forEach((section) => { section.open = true; });
addEventListener("hashchange", reveal);
addEventListener("beforeprint", unfold);
reveal();
"""


def policy() -> str:
    """What browsers may do for the page: run this script and no other, and load nothing at all."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
