"""C++ names as people write them: by the C++ library of this machine."""

from __future__ import annotations

import ctypes
from functools import lru_cache

LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
NAMES_KEPT = 4096


@lru_cache(NAMES_KEPT)
def demangled(name: str) -> str | None:
    """Of a symbol ("_ZTV6Widget") or a type ("6Widget"); None if it is neither, or no C++ library is
    installed."""
    library = _library()
    if library is None or not name.isascii() or "\0" in name:
        return None
    status = ctypes.c_int(-1)
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return None
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        _free(text)


@lru_cache(1)
def _library() -> ctypes.CDLL | None:
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
            library.__cxa_demangle.argtypes = [
                ctypes.c_char_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.POINTER(ctypes.c_int),
            ]
        except (OSError, AttributeError):
            continue
        return library
    return None


def _free(text: int) -> None:
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(text)
