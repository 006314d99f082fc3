"""Names of C++ and Rust functions as their authors wrote them.

C++ by __cxa_demangle of the C++ library that is there, so that nothing has to be installed; Rust's newer
names (_R…), and all of them without that library, by llvm-cxxfilt or c++filt.  Else they stay as they are."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache

LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")
FILTERS = ("llvm-cxxfilt", "c++filt")
FILTER_TIMEOUT_S = 20.0
# Demanglers are recursive and written for compilers' names: a file may hold any.
NAME_LENGTH_MAX = 4096
CXX_NAMES_KEPT = 4096

# By its module's number LLVM tells a local function from those of other modules.
LLVM_SUFFIX = re.compile(r"\.llvm\.[0-9A-Fa-f]+")
RUST_HASH = re.compile(r"::h[0-9a-f]{16}($| \[clone)")
RUST_ESCAPES = {
    "SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}  # fmt: skip
RUST_ESCAPE = re.compile(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u[0-9a-f]{1,6})\$")


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Each name and what it means; the name itself where that is unknown."""
    kept = {name: LLVM_SUFFIX.sub("", name) for name in names}
    convert = _cxa_demangle()
    found: dict[str, str] = {}
    left = []
    for name in dict.fromkeys(kept.values()):
        text = convert(name) if convert is not None and name.startswith("_Z") else None
        if text is not None:
            found[name] = readable_rust(text)
        elif name.startswith(("_Z", "_R", "__R")) and len(name) <= NAME_LENGTH_MAX:
            left.append(name)
    found.update(_filtered(left))
    return {name: found.get(plain) or plain for name, plain in kept.items()}


@lru_cache(CXX_NAMES_KEPT)
def cxx_name(name: str) -> str | None:
    """The name of a C++ symbol ("_ZTV6Widget"); None if it is not one, or no C++ library is installed."""
    convert = _cxa_demangle()
    return convert(name) if convert is not None and name.isascii() and "\0" not in name else None


def readable_rust(name: str) -> str:
    """Rust's older names are C++ names with escapes and a hash: `alloc::vec::Vec$LT$T$GT$::push::h0123…`."""
    if not RUST_HASH.search(name):
        return name
    name = RUST_HASH.sub(lambda found: found[1], name)
    name = RUST_ESCAPE.sub(_unescaped, name).replace("..", "::")
    return re.sub(r"(^|::|<|&|\*| )_(?=[<&*(\[@{])", r"\1", name)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code in RUST_ESCAPES:
        return RUST_ESCAPES[code]
    number = int(code[1:], 16)
    return chr(number) if 32 <= number < 0x110000 else found[0]


@cache
def _cxa_demangle() -> Callable[[str], str | None] | None:
    """The C++ library's function; None without one."""
    for name in LIBRARIES:
        with suppress(OSError, AttributeError):
            function = ctypes.CDLL(name).__cxa_demangle
            release = ctypes.CDLL(None).free
            break
    else:
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    release.restype, release.argtypes = None, [ctypes.c_void_p]

    def convert(mangled: str) -> str | None:
        if len(mangled) > NAME_LENGTH_MAX:
            return None
        made = function(mangled.encode(errors="replace"), None, None, None)
        if not made:
            return None
        try:
            return ctypes.string_at(made).decode(errors="replace")
        finally:
            release(made)

    return convert


def _filtered(names: list[str]) -> dict[str, str]:
    """Demangled by an external program, all names at once."""
    program = next(filter(None, map(shutil.which, FILTERS)), None)
    if not names or program is None:
        return {}
    try:
        step = subprocess.run(
            [program], input="\n".join(names) + "\n", capture_output=True, text=True, check=False,
            timeout=FILTER_TIMEOUT_S, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = step.stdout.splitlines()
    if len(lines) != len(names):
        return {}
    return {name: readable_rust(line) for name, line in zip(names, lines, strict=True)}
