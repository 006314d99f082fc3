"""The class of a C++ object, by its vtable.

    object   [ pointer ──┐ … ]
    vtable   [ offset to the whole object | type_info ─┐ | function | function … ]
    type_info                             [ vtable | name ──▶ "6Widget" ]

The type_info is there in stripped programs too; without it (-fno-rtti) the symbol "vtable for Widget" is
taken."""

from __future__ import annotations

import re
import struct
from functools import cache

from hakmem.base.errors import UnreadableError
from hakmem.blocks.files import Files
from hakmem.layout.memory import Memory
from hakmem.target.demangle import cxx_name

OFFSET_MAX = 1 << 24  # of a base in its object
WORD_BYTES = 8
HEAD, TYPE_INFO = struct.Struct("<qQQ"), struct.Struct("<QQ")
NAME = re.compile(r"\*?[NSZ0-9][A-Za-z0-9_.$]*")
VTABLE = "vtable for "


class Classes:
    """Class names by vtable pointer, each looked up once."""

    def __init__(self, memory: Memory, files: Files) -> None:
        self._memory = memory
        self._files = files
        self.name = cache(self._find)

    def _find(self, pointer: int) -> str | None:
        """The class whose objects begin with this word."""
        if pointer % WORD_BYTES or not self._files.is_data_of_file(pointer):
            return None
        try:
            name = self._by_type_info(pointer)
        except UnreadableError:
            name = None
        return name or self._by_symbol(pointer)

    def _by_type_info(self, pointer: int) -> str | None:
        offset, info, function = HEAD.unpack(self._memory.read(pointer - 2 * WORD_BYTES, HEAD.size))
        if abs(offset) > OFFSET_MAX or not self._files.is_data_of_file(info):
            return None
        if function and not self._files.is_code(function):
            return None
        vtable, name = TYPE_INFO.unpack(self._memory.read(info, TYPE_INFO.size))
        if not (self._files.is_data_of_file(vtable) and self._files.is_data_of_file(name)):
            return None
        text = self._memory.text(name)
        return self._type_name(text) if NAME.fullmatch(text) else None

    @staticmethod
    def _type_name(text: str) -> str:
        """A leading star: the name is local to its file."""
        name = text.removeprefix("*")
        known = cxx_name(f"_ZTS{name}")
        return known.removeprefix("typeinfo name for ") if known else name

    def _by_symbol(self, pointer: int) -> str | None:
        found = self._files.symbol_at(pointer)
        if found is None or not found[0].startswith(VTABLE):
            return None
        return found[0].removeprefix(VTABLE)
