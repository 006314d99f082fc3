"""What every process pays for the library: symbols, pages in memory, pages of its own (decision 0012)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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


# Blocks of most tiers come, grow and go.
WITH_THREADS = """
import threading
blocks = []
def work():
    for size in range(1, 1 << 18, 4099):
        blocks.append(bytes(size % 40000) + bytes(size)[:9])
    del blocks[::2]
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(open("/proc/self/smaps").read())
"""
PROGRAMS = {"small": ["cat", "/proc/self/smaps"], "threads": ["python3", "-I", "-c", WITH_THREADS]}
# With threads it is chance what is run: who meets whom, when a round of giving back comes.
PIECES = {"small": 1, "threads": 2}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_process_has_the_first_pieces_of_the_library(program: str, lib: Path, preload: Callable) -> None:
    mappings = mappings_of(preload(PROGRAMS[program], stats=False).stdout, lib.resolve())
    code = [mapping for mapping in mappings if "x" in mapping["permissions"]]
    assert len(code) == 1
    assert kib(code[0], "Rss") <= PIECES[program] * FIRST_PIECE_KIB
    if program == "small":
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
