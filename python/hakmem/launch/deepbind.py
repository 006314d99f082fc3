"""Does a program call dlopen with RTLD_DEEPBIND?  Determined from its machine code.

The flags are nearly always a constant: `mov esi, imm32` a few instructions before `call dlopen`.  So: find
the calls of dlopen, through its PLT entry or its GOT slot, and check the last value loaded into esi before.
x86-64 only; elsewhere the answer is no.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from hakmem.target.elf import CodeSection, ElfFile

FUNCTIONS = ("dlopen", "dlmopen")
RTLD_DEEPBIND = 0x8
RTLD_LAZY_OR_NOW = 0x3  # dlopen fails without one of them
RTLD_KNOWN = 0x110F  # all flags
LOOK_BACK_BYTES = 48
# jmp *slot(%rip), call *slot(%rip); some PLT entries have a bnd prefix
JUMP_THROUGH = re.compile(rb"\xff\x25(....)", re.DOTALL)
CALL_THROUGH = re.compile(rb"\xff\x15(....)", re.DOTALL)
CALL_NEAR = re.compile(rb"\xe8(....)", re.DOTALL)
JUMP_NEAR = re.compile(rb"\xe9(....)", re.DOTALL)
SET_ESI = re.compile(rb"\xbe(....)", re.DOTALL)
ENDBR64 = b"\xf3\x0f\x1e\xfa"


def asks_for_deepbind(file: ElfFile) -> bool:
    if file.machine != "x86-64" or not file.is_ours:
        return False
    slots = {slot for name in FUNCTIONS for slot in file.slots_of(name)}
    if not slots:
        return False
    sections = file.code
    entries = {entry for section in sections for entry in _plt_entries(section, slots)}
    return any(
        _flags_before(section, place) for section in sections for place in _calls(section, slots, entries)
    )


def _plt_entries(section: CodeSection, slots: set[int]) -> Iterator[int]:
    """Addresses of code that only jumps through one of the slots."""
    for match in JUMP_THROUGH.finditer(section.data):
        if _target(section, match) in slots:
            start = match.start()
            if section.data[start - 1 : start] == b"\xf2":  # bnd
                start -= 1
            if section.data[start - 4 : start] == ENDBR64:
                start -= 4
            yield section.address + start


def _calls(section: CodeSection, slots: set[int], entries: set[int]) -> Iterator[int]:
    """Offsets of calls and tail calls of dlopen."""
    for pattern, wanted in ((CALL_NEAR, entries), (JUMP_NEAR, entries), (CALL_THROUGH, slots)):
        for match in pattern.finditer(section.data):
            if _target(section, match) in wanted:
                yield match.start()


def _target(section: CodeSection, match: re.Match[bytes]) -> int:
    """The target address of an operand relative to the next instruction."""
    return int(section.address + match.end() + struct.unpack("<i", match[1])[0])


def _flags_before(section: CodeSection, place: int) -> bool:
    """Did the last constant loaded into esi include DEEPBIND?"""
    before = section.data[max(0, place - LOOK_BACK_BYTES) : place]
    last = None
    for match in SET_ESI.finditer(before):
        value = struct.unpack("<I", match[1])[0]
        if value and not value & ~RTLD_KNOWN and value & RTLD_LAZY_OR_NOW:
            last = value
    return last is not None and bool(last & RTLD_DEEPBIND)
