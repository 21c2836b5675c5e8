"""``sha256`` without OpenSSL, where Python brings its own.

``hashlib`` loads OpenSSL's library, which takes a twentieth of the start of a process that only calls cached kernels.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

# CPython's own implementation: from 3.12 on, and before.
_MODULES: Final = ("_sha2", "_sha256", "hashlib")


def _implementation() -> Callable[..., Any]:
    for module in _MODULES:
        try:
            found = importlib.import_module(module)
        except ImportError:  # Python can be built without it, and other implementations of Python do not have it
            continue
        return found.sha256  # type: ignore[no-any-return]
    raise AssertionError("hashlib is in the standard library")


_sha256: Final = _implementation()


def sha256(data: bytes) -> bytes:
    """The SHA-256 digest of ``data``, 32 bytes."""
    return _sha256(data).digest()  # type: ignore[no-any-return]


def sha256_hex(data: bytes) -> str:
    """The SHA-256 digest of ``data``, as 64 hexadecimal digits."""
    return _sha256(data).hexdigest()  # type: ignore[no-any-return]
