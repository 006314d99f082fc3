"""The type of a Python object, in CPython 3.8 and later.

    block    [ collector's head | attributes ]  [ reference count | its type | … ]     16 bytes each, if any
    type     [ reference count | PyType_Type, or one derived from it | size | name ──▶ "list" | … | flags ]

PyType_Type is exported by every CPython, as its extensions need it.  Objects up to 512 bytes come from
CPython's own arenas, unless PYTHONMALLOC=malloc is set."""

from __future__ import annotations

from functools import cache, cached_property

from hakmem.base.errors import UnreadableError
from hakmem.blocks.files import Files
from hakmem.layout.memory import Memory

WORD_BYTES = 8
OBJECT_STARTS = (0, 16, 32)  # in its block
TYPE_OF_OBJECT, NAME_OF_TYPE, FLAGS_OF_TYPE = 8, 24, 168
IS_TYPE = 1 << 31  # a flag: its objects are types
NAME_LENGTH_MAX = 200
REFERENCES_MAX = 1 << 48


class PythonTypes:
    """Type names by the type's address, each looked up once."""

    def __init__(self, memory: Memory, files: Files) -> None:
        self._memory = memory
        self._files = files
        self._type_name = cache(self._find)

    @cached_property
    def _type_type(self) -> int | None:
        """The type of types; None: the program has no CPython."""
        return self._files.address_of("PyType_Type", "python")

    @property
    def is_known(self) -> bool:
        return self._type_type is not None

    def name(self, words: list[int]) -> str | None:
        """The type of the object in a block that begins with these words."""
        start = self.start(words)
        return None if start is None else self._type_name(words[(start + TYPE_OF_OBJECT) // WORD_BYTES])

    def is_dead(self, words: list[int]) -> bool:
        """Is it an object without references, which CPython keeps for reuse, as a function's last frame?"""
        places = [(start + TYPE_OF_OBJECT) // WORD_BYTES for start in OBJECT_STARTS if self.is_known]
        return self.start(words) is None and any(
            not words[place - 1] and words[place] and self._type_name(words[place]) is not None
            for place in places
            if place < len(words)
        )

    def start(self, words: list[int]) -> int | None:
        """Where that object begins; None if there is none."""
        for start in OBJECT_STARTS if self.is_known else ():
            place = (start + TYPE_OF_OBJECT) // WORD_BYTES
            is_counted = place < len(words) and 0 < words[place - 1] & 0xFFFFFFFFFFFF < REFERENCES_MAX
            if is_counted and self._type_name(words[place]) is not None:
                return start
        return None

    def _find(self, address: int) -> str | None:
        """None unless a type is there."""
        if address % WORD_BYTES or self._files.mapping_at(address) is None:
            return None
        try:
            if not self._is_type(self._memory.word(address + TYPE_OF_OBJECT)):
                return None
            name = self._memory.text(self._memory.word(address + NAME_OF_TYPE))
        except (UnreadableError, OverflowError):
            return None
        return name if 0 < len(name) <= NAME_LENGTH_MAX and name.isprintable() else None

    def _is_type(self, metatype: int) -> bool:
        """Is it PyType_Type, or a class derived from it?"""
        if metatype == self._type_type:
            return True
        if metatype % WORD_BYTES or self._files.mapping_at(metatype) is None:
            return False
        return self._memory.word(metatype + TYPE_OF_OBJECT) == self._type_type and bool(
            self._memory.word(metatype + FLAGS_OF_TYPE) & IS_TYPE
        )
