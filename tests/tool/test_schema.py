"""The reader understands libraries that know more, or less, than it does."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hakmem.base.errors import NotHakmemError, UnreadableError, VersionError
from hakmem.layout.memory import Addresses, Bytes, Memory
from hakmem.layout.schema import HEAD, MAGIC, Schema
from hakmem.target.locate import find, is_block
from hakmem.target.process import Mapping
from numpy.typing import NDArray

BLOCK, ENTRIES, ROOTS, TEXTS, DATA = 0x1000, 0x10000, 0x20000, 0x30000, 0x40000
ENTRY, ROOT = struct.Struct("=IIccccIII"), struct.Struct("=24sQ")

# record, name, unit, meaning, kind, role, type, value, element bytes, elements
Row = tuple[str, str, str, str, str, str, str, int, int, int]
ROWS: list[Row] = [
    ("constant", "answer", "", "", "c", "s", "u", 42, 0, 0),
    ("inner", "inner", "", "", "r", "s", "r", 8, 0, 0),
    ("inner", "low", "", "", "f", "s", "u", 0, 4, 1),
    ("inner", "high", "", "", "f", "s", "i", 4, 4, 1),
    ("outer", "outer", "", "", "r", "s", "r", 40, 0, 0),
    ("outer", "count", "blocks", "how many", "f", "c", "u", 0, 8, 1),
    ("outer", "parts", "", "inner", "f", "s", "r", 8, 8, 2),
    ("outer", "words", "", "", "f", "g", "u", 24, 2, 4),
]


class FakeMemory(Memory):
    """Pieces of memory by their addresses."""

    def __init__(self, pieces: dict[int, bytes]) -> None:
        self.pieces = pieces

    def gather(self, addresses: Addresses, counts: NDArray[np.uint64]) -> Bytes:
        pairs = zip(addresses.tolist(), counts.tolist(), strict=True)
        return np.frombuffer(b"".join(self._piece(*pair) for pair in pairs), np.uint8)

    def _piece(self, address: int, count: int) -> bytes:
        for begin, data in self.pieces.items():
            if begin <= address and address + count <= begin + len(data):
                return data[address - begin : address - begin + count]
        raise UnreadableError(address)


def block(rows: Sequence[Row] = ROWS, version: str = "0.4.0", number: int = 1, longer: int = 0) -> FakeMemory:
    """A library's memory.  `longer`: bytes that its rows have more than we know of."""
    texts, entries = b"", b""
    for record, name, unit, meaning, *letters, value, element_bytes, count in rows:
        letters_as_bytes = [letter.encode() for letter in letters]
        numbers = value, element_bytes, count
        entries += ENTRY.pack(len(texts), len(texts) + 1000, *letters_as_bytes, b"\0", *numbers)
        entries += b"\xee" * longer
        text = "\0".join([name, unit, meaning, ""]).encode().ljust(1000, b"\0") + record.encode() + b"\0"
        texts += text.ljust(1100, b"\0")
    roots = ROOT.pack(b"data", DATA) + b"\xee" * longer
    head = HEAD.pack(
        MAGIC, number, HEAD.size, ENTRY.size + longer, len(rows), ENTRIES,
        ROOT.size + longer, 1, ROOTS, TEXTS, len(texts), version.encode(),
    )  # fmt: skip
    data = struct.pack("=QIiIi4H", 7, 1, -2, 3, -4, 5, 6, 7, 8)
    return FakeMemory(
        {BLOCK: head, ENTRIES: entries, ROOTS: roots, TEXTS: texts, DATA: data.ljust(40, b"\0")}
    )


@pytest.mark.parametrize("longer", [0, 8])
def test_records_are_read_by_name(longer: int) -> None:
    memory = block(longer=longer)
    schema = Schema.read(memory, BLOCK)
    assert (schema.version, schema.constant("answer"), schema.root("data")) == ("0.4.0", 42, DATA)
    outer = memory.array(DATA, schema.dtype("outer"), 1)[0]
    assert outer["count"] == 7
    assert outer["parts"]["low"].tolist() == [1, 3]
    assert outer["parts"]["high"].tolist() == [-2, -4]
    assert outer["words"].tolist() == [5, 6, 7, 8]
    meta = schema.meta("outer")["count"]
    assert (meta.unit, meta.role, meta.meaning) == ("blocks", "counter", "how many")


def test_what_an_older_library_lacks_is_said() -> None:
    schema = Schema.read(block(ROWS[:4], version="0.3.0"), BLOCK)
    assert not schema.has("outer")
    assert schema.meta("outer") == {}
    for ask in (
        lambda: schema.dtype("outer"),
        lambda: schema.need("inner", "low", "middle"),
        lambda: schema.constant("question"),
        lambda: schema.root("nowhere"),
    ):
        with pytest.raises(VersionError, match=r"hakmem 0\.3\.0 does not provide"):
            ask()


def test_what_a_newer_library_adds_is_kept() -> None:
    added: Row = ("outer", "news", "bytes", "unknown to us", "f", "g", "u", 32, 8, 1)
    strange: Row = ("outer", "strange", "", "", "?", "?", "?", 0, 0, 0)
    schema = Schema.read(block([*ROWS, added, strange]), BLOCK)
    assert schema.meta("outer")["news"].meaning == "unknown to us"
    assert not schema.has("outer", "strange")


@pytest.mark.parametrize("number", [0, 2, 77])
def test_another_format_is_refused(number: int) -> None:
    with pytest.raises(VersionError, match=rf"format {number}; this tool \(.*\) reads format 1"):
        Schema.read(block(number=number), BLOCK)


def test_a_head_that_cannot_be_is_refused() -> None:
    memory = block()
    for offset in (24, 28, 40, 44):  # sizes and counts of entries and roots
        head = bytearray(memory.pieces[BLOCK])
        head[offset : offset + 4] = b"\xff\xff\xff\xff"
        with pytest.raises(VersionError):
            Schema.read(FakeMemory({**memory.pieces, BLOCK: bytes(head)}), BLOCK)
    with pytest.raises(NotHakmemError):
        Schema.read(FakeMemory({BLOCK: bytes(HEAD.size)}), BLOCK)


def test_the_magic_alone_is_no_block() -> None:
    """It stands in the code of who looks for it, too."""
    memory = FakeMemory({0x5000: bytes(8) + MAGIC + b"text of a program".ljust(4072, b"."), **block().pieces})
    assert not is_block(memory, 0x6000)
    mapping = [
        Mapping(0x5000, 0x6000, "r-xp", 0, "", 1, "/a"),
        Mapping(BLOCK, BLOCK + HEAD.size, "rw-p", 0, "", 1, "/a"),
    ]
    assert [found.address for found in find(memory, mapping, "/a", lambda _: None)] == [BLOCK]
    assert not find(memory, mapping[:1], "/a", lambda _: None)


def test_a_block_that_was_not_relocated_is_none() -> None:
    """As it lies in the file, beside the one in use."""
    head = bytearray(block().pieces[BLOCK])
    struct.pack_into("=Q", head, 32, ENTRIES - 0x8000)
    memory = FakeMemory({0x5000: bytes(head), **block().pieces})
    mapping = [
        Mapping(0x5000, 0x5000 + HEAD.size, "r--p", 0, "", 1, "/a"),
        Mapping(BLOCK, BLOCK + HEAD.size, "r--p", 0, "", 1, "/a"),
        Mapping(0x6000, 0x7000, "r-xp", 0, "", 1, "/a"),
    ]
    assert [found.address for found in find(memory, mapping, "/a", lambda _: None)] == [BLOCK]
