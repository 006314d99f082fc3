"""Functions and lines of Python in the stacks that the sampler keeps (src/stack/unwind_python.h).

    frames = PythonFrames.of(target)    None: the sampler was given no recipe
    frames.woven(words)                 return addresses, with Python's functions before the interpreter's
                                        function that ran them

A function and line of Python gets a number that user space has no address for, the same in each process;
`place_of` tells what it stands for.  Whether a code object is still the one that was sampled shows its hash:
one that was freed keeps the name of an earlier reading, or has none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from hakmem.base.errors import HakmemError, UnreadableError
from hakmem.layout.memory import Memory
from hakmem.target.functions import Symbols, symbols_of
from hakmem.target.process import Mapping
from hakmem.target.python_lines import lines_of_code
from hakmem.target.python_recipe import CONTROL, WORDS, Recipe
from hakmem.target.target import Target

PYTHON_WORD, FRAME_WORDS, IS_PLACE = 1 << 63, 2, 1 << 62
CALLED_BY_C, NOT_CODE = 1, 0x80  # of a frame's byte
HASH_BITS, HASH_FACTOR, WORD_MASK = 31, 0xFF51AFD7ED558CCD, (1 << 64) - 1
INSTRUCTION_UNKNOWN = (1 << 24) - 1
CODE_BYTES, WORD_BYTES, TYPE_AT, REFERENCES = 256, 8, 8, 0xFFFFFFFF
# In bytes and str: their length; then a hash; the content of bytes, the kind of str.
SIZE_AT, BYTES_AT = 16, 32
TEXT_AT = {False: (48, 72), True: (40, 56)}  # since 3.12: of a str in ASCII, and of others
TEXT_MAX, LINES_MAX = 4096, 1 << 20
RUNS_PYTHON = ("_PyEval_EvalFrameDefault", "_TAIL_CALL_")  # and its parts: .cold, or one for each instruction
SHIMS = ("<shim>", "<trampolines>", "<interpreter trampoline>")  # where C calls Python, as 3.12 marks it
FREED = "(freed function of Python)"


class Place(NamedTuple):
    function: str
    file: str = ""
    line: int = 0


_places: dict[int, Place] = {}


def number_of(place: Place) -> int:
    """The number that stands for it in stacks."""
    text = "\0".join((place.function, place.file, str(place.line)))
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=7).digest()
    number = IS_PLACE | int.from_bytes(digest, "little")
    _places[number] = place
    return number


def is_place(number: int) -> bool:
    """Also of one from a file, which has its name."""
    return number >> 62 == IS_PLACE >> 62


def place_of(number: int) -> Place | None:
    """None for an address."""
    return _places.get(number)


@dataclass(frozen=True)
class _Code:
    """A code object, as far as it tells places."""

    recipe: Recipe
    name: str
    file: str
    first_line: int
    lines: bytes

    @property
    def is_shim(self) -> bool:
        return self.file in SHIMS or self.name in SHIMS

    def place(self, instruction: int) -> Place:
        unit = 2 if self.recipe.version == 0x30A else 1
        at = instruction * unit - (self.recipe.code if self.recipe.is_by_address else 0)
        if instruction == INSTRUCTION_UNKNOWN or at < 0:
            return Place(self.name, self.file, self.first_line)
        return Place(
            self.name, self.file, lines_of_code(self.recipe.version, self.lines, self.first_line, at)
        )


@dataclass
class PythonFrames:
    """The code objects of one process, by address and hash, each read once."""

    memory: Memory
    recipe: Recipe
    mappings: list[tuple[Mapping, Symbols, int]] = field(default_factory=list)  # of the interpreter's code
    _frames: dict[tuple[int, int], tuple[int, bool]] = field(default_factory=dict)
    _codes: dict[tuple[int, int], _Code | None] = field(default_factory=dict)
    _runs: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, target: Target) -> PythonFrames | None:
        """One for all readings of a target: a function that is freed between two keeps its name."""
        record = target.schema.structure(target.memory, CONTROL)
        recipe = Recipe.of_words(*(int(record[f"python_{name}"]) for name in WORDS[:-1]))
        if not recipe.code_type:
            return None
        kept: PythonFrames | None = target.python
        if kept is None or kept.recipe != recipe:
            target.python = kept = cls(target.memory, recipe, list(_mappings(target, recipe.code_type)))
        return kept

    def woven(self, words: Sequence[int]) -> tuple[int, ...]:
        """A stack as the sampler keeps it, with frames of Python at its end."""
        start = next((at for at, word in enumerate(words) if word >= PYTHON_WORD), len(words))
        runs = self._runs_of(words[start:])
        found: list[int] = []
        for address in words[:start]:
            if self._is_running(address):
                found += next(runs, ())
            found.append(address)
        for run in runs:
            found += run
        return tuple(found)

    # ---- frames ----------------------------------------------------------------------------------------

    def _runs_of(self, words: Sequence[int]) -> Iterator[list[int]]:
        """Runs of Python's functions that called each other; what runs each is one call of the interpreter's
        function.  As return addresses, whose calls lie before them."""
        run: list[int] = []
        for frame in zip(words[::FRAME_WORDS], words[1::FRAME_WORDS], strict=False):
            if frame not in self._frames:
                self._frames[frame] = self._frame(*frame)
            number, is_called_by_c = self._frames[frame]
            run += [number + 1] if number else []
            if run and is_called_by_c:
                yield run
                run = []
        if run:
            yield run

    def _frame(self, code_word: int, rest: int) -> tuple[int, bool]:
        """The number of its place, 0 for none, and whether C has called it."""
        code = self._code(code_word & ~PYTHON_WORD, rest >> 32 & (1 << HASH_BITS) - 1)
        is_called_by_c = self._is_called_by_c(code, rest & 0xFF)
        if code is None:
            return number_of(Place(FREED)), is_called_by_c
        instruction = rest >> 8 & INSTRUCTION_UNKNOWN
        return 0 if code.is_shim else number_of(code.place(instruction)), is_called_by_c

    def _is_called_by_c(self, code: _Code | None, byte: int) -> bool:
        if not self.recipe.is_by_address:
            return True
        if self.recipe.frame[3]:
            return bool(byte & CALLED_BY_C)
        return bool(byte & NOT_CODE) or (code is not None and code.is_shim)

    def _is_running(self, address: int) -> bool:
        """Is it in the function of the interpreter that runs Python's?"""
        if address not in self._runs:
            names = (
                symbols.at(address - 1 - bias)
                for mapping, symbols, bias in self.mappings
                if mapping.start < address <= mapping.end
            )
            self._runs[address] = any(one is not None and one[0].startswith(RUNS_PYTHON) for one in names)
        return self._runs[address]

    # ---- code objects ----------------------------------------------------------------------------------

    def _code(self, address: int, wanted: int) -> _Code | None:
        """None if it was freed, and not read before."""
        if (address, wanted) not in self._codes:
            code = None
            with suppress(HakmemError, LookupError, OverflowError, ValueError):
                if self._hash(address) == wanted:
                    code = self._read(self.memory.words(address, CODE_BYTES // WORD_BYTES))
                    code = code if self._hash(address) == wanted else None  # it may be freed meanwhile
            self._codes[address, wanted] = code
        return self._codes[address, wanted]

    def _hash(self, address: int) -> int | None:
        """As hash_code of src/stack/unwind_python.c; None where there is no code object, or a freed one."""
        head = self.memory.words(address, CODE_BYTES // WORD_BYTES)
        if not head[0] & REFERENCES or head[TYPE_AT // WORD_BYTES] != self.recipe.code_type:
            return None
        words = [word for number, word in enumerate(head) if self.recipe.hashed >> number & 1]
        mixed = address
        for word in (*words, *self.memory.words(words[-1] + SIZE_AT, 2)):
            mixed ^= word
            mixed = (mixed ^ mixed >> 33) * HASH_FACTOR & WORD_MASK
            mixed ^= mixed >> 33
        return mixed >> 64 - HASH_BITS

    def _read(self, head: list[int]) -> _Code:
        file, name, lines = (head[place // WORD_BYTES] for place in self.recipe.names)
        first = head[self.recipe.first_line // WORD_BYTES] >> self.recipe.first_line % WORD_BYTES * 8
        return _Code(self.recipe, self._text(name), self._text(file), first & 0x7FFFFFFF, self._bytes(lines))

    def _text(self, address: int) -> str:
        """A str in its compact form, as all names are."""
        length, _, state = self.memory.words(address + SIZE_AT, 3)
        bits = state >> (2 if state >> 2 & 7 else 16)  # 3.14 widens the part below
        kind, is_compact, is_ascii = bits & 7, bits >> 3 & 1, bits >> 4 & 1
        codec = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}.get(kind)
        if not is_compact or codec is None or length > TEXT_MAX:
            raise UnreadableError(address)
        start = TEXT_AT[self.recipe.version >= 0x30C][0 if is_ascii else 1]
        return self.memory.read(address + start, length * kind).decode(codec, "replace")

    def _bytes(self, address: int) -> bytes:
        length = self.memory.word(address + SIZE_AT)
        if length > LINES_MAX:
            raise UnreadableError(address)
        return self.memory.read(address + BYTES_AT, length)


def _mappings(target: Target, code_type: int) -> Iterator[tuple[Mapping, Symbols, int]]:
    """The interpreter's code: of the file in which the type of code objects lies."""
    maps = target.maps()
    path = next((one.path for one in maps if one.start <= code_type < one.end), "")
    for mapping in [one for one in maps if path and one.path == path and "x" in one.permissions]:
        loaded = target.loaded(mapping)
        symbols = symbols_of(loaded[0]) if loaded else None
        if loaded and symbols:
            yield mapping, symbols, loaded[1]
