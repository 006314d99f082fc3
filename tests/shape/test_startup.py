"""What every process pays for the library: symbols, pages in memory, pages of its own (decision 0012)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

# The kernel maps so much at the first touch; all that most programs run and read is there (first.ld).
FIRST_PIECE_KIB = 64
# One that the dynamic linker writes and one of variables.
OWN_PAGES_KIB = 8
# Each costs every process about 0.2 µs.
LOOKED_UP_MAX = 41

Mapping = dict[str, str]


def mappings_of(smaps: str, library: Path) -> list[Mapping]:
    """Of the library's file: permissions, and what /proc/PID/smaps says, by name."""
    found: list[Mapping] = []
    for line in smaps.splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)", line)
        if head:
            found.append({"permissions": head[1], "file": head[2]})
        elif found:
            name, _, value = line.partition(":")
            found[-1][name] = value
    return [mapping for mapping in found if mapping["file"] == str(library)]


def kib(mapping: Mapping, name: str) -> int:
    return int(mapping[name].split()[0])


# With threads it is chance what is run: who meets whom, when a round of giving back comes.
def test_a_small_process_has_the_first_piece_of_the_library(lib: Path, preload: Callable) -> None:
    mappings = mappings_of(preload(["cat", "/proc/self/smaps"], stats=False).stdout, lib.resolve())
    code = [mapping for mapping in mappings if "x" in mapping["permissions"]]
    assert len(code) == 1
    assert kib(code[0], "Rss") <= FIRST_PIECE_KIB
    assert sum(kib(mapping, "Anonymous") for mapping in mappings) <= OWN_PAGES_KIB


def test_few_symbols_are_looked_up(lib: Path) -> None:
    relocations = subprocess.run(
        ["readelf", "--relocs", "--wide", lib], capture_output=True, text=True, check=True
    ).stdout
    assert len(re.findall(r"_(?:GLOB_DAT|JUMP_SLOT?|64) ", relocations)) <= LOOKED_UP_MAX


def test_a_process_without_threads_registers_no_fork_handlers(preload: Callable) -> None:
    """To register costs 64 KiB of the C library (override_threads.c)."""
    bindings = preload(["true"], stats=False, env={"LD_DEBUG": "bindings"}).stderr
    taken = set(re.findall(r"file \S*/libhakmem\.so \[0\] to \S*/libc\.so\S* .*`(\w+)'", bindings))
    assert "syscall" in taken
    assert "__register_atfork" not in taken
