"""Compilers that this machine may not have, each in a root of the release that has it, kept in
build/compilers/SUITE.

`make_root(suite)` returns a Root with the chosen compilers of that suite: all, or those that match ONLY, a
regular expression, which have a root of their own."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from roots import Root, root_with

STORE = Path(__file__).resolve().parents[2] / "build" / "compilers"
TOOLS = ("cmake", "ninja-build", "libc6-dev", "libcmocka-dev", "python3-minimal")


@dataclass(frozen=True)
class Compiler:
    name: str  # command and package
    suite: str  # of Debian or Ubuntu

    @property
    def version(self) -> int:
        return int(self.name.partition("-")[2])


# gcc 12 and clang 14 are Debian 12's, where everything else is built by them.
COMPILERS = (
    Compiler("gcc-13", "questing"),
    Compiler("gcc-14", "questing"),
    Compiler("gcc-15", "questing"),
    Compiler("gcc-16", "resolute"),
    Compiler("clang-15", "noble"),
    Compiler("clang-16", "noble"),
    Compiler("clang-17", "questing"),
    Compiler("clang-18", "questing"),
    Compiler("clang-19", "questing"),
    Compiler("clang-20", "questing"),
    Compiler("clang-21", "questing"),
    Compiler("clang-22", "resolute"),
)
ONLY = os.environ.get("ONLY", "")
CHOSEN = [one for one in COMPILERS if re.search(ONLY, one.name)]


def make_root(suite: str) -> Root:
    """CannotFetchError says why it cannot be had."""
    names = [one.name for one in CHOSEN if one.suite == suite]
    # clang takes the newest gcc's libraries, and warns where those of C++ are missing.
    libraries = [f"libstdc++-{name[4:]}-dev" for name in names if name.startswith("gcc-")]
    return root_with(STORE / (f"some-{suite}" if ONLY else suite), suite, [*TOOLS, *names, *libraries])
