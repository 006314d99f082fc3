"""The content of a block, judged by its first bytes.

    in this order: nothing (not resident), zeros, an object of a C++ class, a Python object, text, pointers,
    a structure (some pointers), random bytes (compressed or encrypted), numbers, other

A block is larger than what was asked for, and keeps the bytes of the one before it: the judgement is by
what prevails."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hakmem.blocks.block_map import BlockMap, State
from hakmem.blocks.cxx import Classes
from hakmem.blocks.files import Files
from hakmem.blocks.pointers import read_pieces
from hakmem.blocks.python_types import PythonTypes
from hakmem.blocks.residence import resident_counts
from hakmem.layout.memory import Addresses, Flags, Integers

WORD_BYTES = 8
HEAD_BYTES = 1024  # of each block are read
HEAD_WORDS = 6  # in which a class or type is looked for
ARRAY_COOKIES = (0, 8, 16)  # before the first object of an array
STRING_BYTES_MIN = 8  # a pointer has two zeros at its end
TEXT_SHARE = 0.7
POINTER_SHARE = 0.5
RANDOM_BYTES_MIN = 128
RANDOM_SHARE = 0.9  # of the entropy that as many random bytes have
SMALL_NUMBER = 1 << 20
NUMBER_SHARE = 0.75
EXAMPLE_LENGTH = 60
UTF16 = re.compile(rb"(?:[\x20-\x7e\t\r\n]\x00){4,}")
PRINTABLE = re.compile(
    rb"(?:[\x20-\x7e\t\r\n]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){4,}"
)


class Kind(StrEnum):
    UNTOUCHED = "not resident"
    ZERO = "zeros"
    CXX = "C++ object"
    PYTHON = "Python object"
    TEXT = "text"
    WIDE_TEXT = "text, UTF-16"
    POINTERS = "pointers"
    STRUCTURE = "structure"
    RANDOM = "random bytes"
    NUMBERS = "numbers"
    OTHER = "other"


TEXTS = ((Kind.WIDE_TEXT, UTF16, "utf-16-le"), (Kind.TEXT, PRINTABLE, "utf-8"))


@dataclass(frozen=True)
class Content:
    kind: Kind
    name: str = ""  # of the class or type; of a symbol that a structure begins with a pointer to
    text: str = ""  # an example; only shown if asked for
    pointer_share: float = 0.0  # of the words that are not zero
    entropy_bits: float | None = None  # for each byte


class Contents:
    """Classifies the blocks of one map."""

    def __init__(self, block_map: BlockMap, files: Files) -> None:
        self._map = block_map
        self._files = files
        self._target = block_map.target
        self.classes = Classes(self._target.memory, files)
        self.python = PythonTypes(self._target.memory, files)
        self._bounds = np.array([(one.start, one.end) for one in files.mappings] or [(0, 0)], np.uint64)

    def of(self, blocks: Integers) -> list[Content]:
        starts, sizes = self._map.starts_of(blocks), self._map.sizes_of(blocks)
        wanted = np.minimum(sizes, HEAD_BYTES) // WORD_BYTES * WORD_BYTES
        counts = resident_counts(self._target, starts, wanted)
        found = [Content(Kind.UNTOUCHED)] * len(blocks)
        rows = np.flatnonzero(counts > 0)
        words = read_pieces(self._target.memory, starts[rows], counts[rows].astype(np.uint64))
        is_block, is_address = self._pointers(words)
        ends = np.cumsum(counts[rows]) // WORD_BYTES
        for row, start, end in zip(rows.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
            part = slice(start, end)
            found[row] = self._one(words[part], is_block[part], is_address[part])
        return found

    def _pointers(self, words: Addresses) -> tuple[Flags, Flags]:
        """Which words point into a live block, and which into any mapping."""
        blocks, _ = self._map.find(words)
        is_block = (
            (blocks >= 0) & (self._map.states[np.maximum(blocks, 0)] == State.LIVE)
            if len(self._map.states)
            else blocks >= 0
        )
        starts, ends = self._bounds.T
        row = np.maximum(np.searchsorted(starts, words, "right") - 1, 0)
        return is_block, (words >= starts[row]) & (words < ends[row]) & (words > HEAD_BYTES)

    def _one(self, words: Addresses, is_block: Flags, is_address: Flags) -> Content:
        filled = int(np.count_nonzero(words))
        if not filled:
            return Content(Kind.ZERO)
        share = int(is_address.sum()) / filled
        head, data = words[:HEAD_WORDS].tolist(), words.tobytes()
        if known := self._named(head, share) or string_at_start(data, share):
            return known
        if share >= POINTER_SHARE and filled > 1:
            to_code = self._files.is_code(head[0]) and not is_block.any()
            return Content(Kind.POINTERS, "to code" if to_code else "", pointer_share=share)
        if share < POINTER_SHARE and (known := prevailing_text(data, share)):
            return known
        if share > 0:
            return Content(Kind.STRUCTURE, self._begins_with(head[0]), pointer_share=share)
        return without_pointers(words, data)

    def _named(self, head: list[int], share: float) -> Content | None:
        """An object whose class or type is known."""
        if name := self._class(head):
            return Content(Kind.CXX, name, pointer_share=share)
        if name := self.python.name(head):
            return Content(Kind.PYTHON, name, pointer_share=share)
        return None

    def _class(self, head: list[int]) -> str | None:
        """The class of the object at the block's start, or of an array's first object."""
        for cookie in ARRAY_COOKIES:
            place = cookie // WORD_BYTES
            if place < len(head) and (name := self.classes.name(head[place])):
                is_array = cookie > 0 and 0 < head[place - 1] < SMALL_NUMBER
                if cookie == 0 or is_array:
                    return f"{name}[]" if is_array else name
        return None

    def _begins_with(self, word: int) -> str:
        """A C program's structure is often known by a table of functions that it points to."""
        if not self._files.is_data_of_file(word):
            return ""
        symbol = self._files.symbol_at(word)
        return f"with &{symbol[0]}" if symbol and symbol[1] == 0 else ""


def string_at_start(data: bytes, pointer_share: float) -> Content | None:
    """A string that the block begins with.  What follows its end may be left from the block before."""
    run = PRINTABLE.match(data)
    if run is None or run.end() < STRING_BYTES_MIN or data[run.end() : run.end() + 1] not in (b"\0", b""):
        return None
    text = run[0].decode(errors="replace")[:EXAMPLE_LENGTH]
    return Content(Kind.TEXT, text=text, pointer_share=pointer_share)


def prevailing_text(data: bytes, pointer_share: float) -> Content | None:
    """Text of one or two bytes for each sign, anywhere in the block, if it is most of what is there."""
    for kind, pattern, encoding in TEXTS:
        runs = [match[0] for match in pattern.finditer(data)]
        if runs and sum(map(len, runs)) >= TEXT_SHARE * len(data.rstrip(b"\0")):
            text = max(runs, key=len).decode(encoding, errors="replace")[:EXAMPLE_LENGTH]
            return Content(kind, text=text, pointer_share=pointer_share)
    return None


def without_pointers(words: Addresses, data: bytes) -> Content:
    """Random bytes, numbers, or neither."""
    entropy = entropy_of(data)
    if len(data) >= RANDOM_BYTES_MIN and entropy >= RANDOM_SHARE * min(8.0, np.log2(len(data))):
        return Content(Kind.RANDOM, entropy_bits=entropy)
    return Content(Kind.NUMBERS if are_numbers(words) else Kind.OTHER, entropy_bits=entropy)


def are_numbers(words: Addresses) -> bool:
    """Are most of them small integers, or floating-point numbers of a usual size, of 4 or 8 bytes?"""
    halves = words.view(np.uint32)
    small = [
        np.abs(column.astype(np.int64)) < SMALL_NUMBER
        for column in (words.view(np.int64), halves.view(np.int32))
    ]
    with np.errstate(all="ignore"):
        doubles, floats = np.abs(words.view(np.float64)), np.abs(halves.view(np.float32))
        usual = [
            (doubles > 1e-9) & (doubles < 1e15) | (words == 0),
            (floats > 1e-6) & (floats < 1e9) | (halves == 0),
        ]
    return any(float(column.mean()) >= NUMBER_SHARE for column in (*small, *usual))


def entropy_of(data: bytes) -> float:
    """Bits for each byte, by how often each value occurs."""
    counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    shares = counts[counts > 0] / len(data)
    return float(-(shares * np.log2(shares)).sum()) + 0.0
