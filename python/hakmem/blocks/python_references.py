"""References between Python objects, on the way from a block to a root.

The collector's lists link all of its objects, so that the shortest way to any of them leads through its head:

    block    [ next, previous in the collector's list | reference count | its type | … ]

Such a link, a word that a free list of the interpreter has kept, and an object without references hold
nothing.  A way also ends at the variable of a module, an entry of a dict's table that has the module's name:

    table    [ … | (hash) "__name__" ──▶ "__main__" | … | (hash) "AUDIT" ──▶ the object | … ]"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from hakmem.base.errors import UnreadableError
from hakmem.blocks.files import Files
from hakmem.blocks.python_types import WORD_BYTES, PythonTypes
from hakmem.layout.memory import Memory

HEAD_WORDS = 6
OF_INTERPRETER = ("_PyRuntime", "free_list")  # symbols: its own data, where stale words stay
NAME_WORDS = 128  # of a table, in which the module's name is: it is made with it
STATE_OF_STRING, TEXTS_OF_STRING, LENGTH_OF_STRING = 32, (40, 48), 16  # the first: since 3.12
IS_COMPACT_ASCII = 3 << 5
NAME_LENGTH_MAX = 200
MODULE_NAME = "__name__"


class PythonReferences:
    """Tells references from other words, and names the variables of modules."""

    def __init__(self, memory: Memory, files: Files) -> None:
        self._memory = memory
        self._types = PythonTypes(memory, files)
        self.object_at = cache(self._object_at)
        self.is_dead = cache(self._is_dead)
        self._text = cache(self._find_text)

    @property
    def is_known(self) -> bool:
        return self._types.is_known

    def is_reference(self, block_start: int, into: int, where: str, holder: int | None) -> bool:
        """`into`: where in the block the word points; `where` the word is, and the block that it is in."""
        if any(name in where for name in OF_INTERPRETER):
            return False
        return into >= self.object_at(block_start) and not (holder and self.is_dead(holder))

    def _is_dead(self, block_start: int) -> bool:
        return self._types.is_dead(self._words(block_start, HEAD_WORDS))

    def _object_at(self, block_start: int) -> int:
        """Where in its block the object begins; 0 if there is none."""
        return self._types.start(self._words(block_start, HEAD_WORDS)) or 0

    def variable(self, word: int, table: int) -> str:
        """`__main__.AUDIT`, whose value is this word of a block; empty for other words."""
        key = self._text(self._word(word - WORD_BYTES)) if word > table else ""
        if not key.isidentifier():
            return ""
        words = self._words(table, NAME_WORDS)
        for name, value in pairwise(words):
            if name and self._text(name) == MODULE_NAME:
                module = self._text(value)
                return f"{module}.{key}" if module else ""
        return ""

    def _find_text(self, string: int) -> str:
        """The text of an object of type str, if it is ASCII; else empty."""
        if string % WORD_BYTES or not string or self._types.name(self._words(string, 2)) != "str":
            return ""
        state, length = self._word(string + STATE_OF_STRING), self._word(string + LENGTH_OF_STRING)
        if state & IS_COMPACT_ASCII != IS_COMPACT_ASCII or not 0 < length <= NAME_LENGTH_MAX:
            return ""
        for start in TEXTS_OF_STRING:
            try:
                data = self._memory.read(string + start, length + 1)
            except (UnreadableError, OverflowError):
                return ""
            if data.endswith(b"\0") and data[:-1].isascii() and data[:-1].decode("ascii").isprintable():
                return data[:-1].decode("ascii")
        return ""

    def _word(self, address: int) -> int:
        words = self._words(address, 1)
        return words[0] if words else 0

    def _words(self, address: int, count: int) -> list[int]:
        """As many as can be read."""
        while count:
            try:
                return self._memory.words(address, count)
            except (UnreadableError, OverflowError):
                count //= 2
        return []
