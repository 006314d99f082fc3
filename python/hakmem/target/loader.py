"""The objects that the dynamic loader has loaded, in the order in which it looks for symbols.

program's DT_DEBUG ──▶ r_debug ──▶ link_map ──▶ link_map ──▶ …        program, LD_PRELOAD, libraries"""

from __future__ import annotations

import struct
from contextlib import suppress

from hakmem.base.errors import UnreadableError
from hakmem.layout.memory import Memory
from hakmem.target.elf_format import DYNAMIC_TAG

DT_NULL, DT_DEBUG = 0, 21
TAGS_MAX, OBJECTS_MAX = 256, 1 << 16  # more are damaged memory
FIRST_OBJECT = struct.Struct("=8xQ")  # of r_debug
OBJECT = struct.Struct("=QQQQ")  # link_map: load bias, name, dynamic tags, the next one


def load_order(memory: Memory, dynamic_tags: int) -> list[int]:
    """The load biases of all objects of a dynamic program, given the address of its tags; as many as can be
    read."""
    biases: list[int] = []
    with suppress(UnreadableError):
        debug = _debug(memory, dynamic_tags)
        place = FIRST_OBJECT.unpack(memory.read(debug, FIRST_OBJECT.size))[0] if debug else 0
        while place and len(biases) < OBJECTS_MAX:
            bias, _, _, place = OBJECT.unpack(memory.read(place, OBJECT.size))
            biases.append(bias)
    return biases


def _debug(memory: Memory, address: int) -> int:
    for place in range(address, address + TAGS_MAX * DYNAMIC_TAG.size, DYNAMIC_TAG.size):
        tag, value = DYNAMIC_TAG.unpack(memory.read(place, DYNAMIC_TAG.size))
        if tag == DT_DEBUG:
            return int(value)
        if tag == DT_NULL:
            break
    return 0
