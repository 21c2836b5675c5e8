"""``sha256`` without OpenSSL, where Python brings its own.

``hashlib`` loads OpenSSL's library, which takes a twentieth of the start of a process that only calls cached kernels;
but it hashes several times as fast.
"""

from __future__ import annotations

import importlib
import sys
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
# With more bytes, the library is loaded in less time than it saves.
_MANY: Final = 1 << 20


def sha256(data: bytes) -> bytes:
    """The SHA-256 digest of ``data``, 32 bytes."""
    return _hashed(data).digest()  # type: ignore[no-any-return]


def sha256_hex(data: bytes) -> str:
    """The SHA-256 digest of ``data``, as 64 hexadecimal digits."""
    return _hashed(data).hexdigest()  # type: ignore[no-any-return]


def hash_much() -> None:
    """Loads OpenSSL's library, for who is going to hash many pieces."""
    importlib.import_module("hashlib")


def _hashed(data: bytes) -> Any:
    if len(data) >= _MANY:
        hash_much()
    loaded = sys.modules.get("hashlib")
    return _sha256(data) if loaded is None else loaded.sha256(data)
