"""The reader of a library's description, on descriptions that were damaged: it reads them or says what is
wrong with them in a sentence of its own, and never asks for memory beyond reason."""

import contextlib
import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest
from hakmem.base.errors import HakmemError
from hakmem.layout.schema import HEAD, Schema
from results import Tally

ROUNDS, DAMAGED_PER_ROUND = 40, 100
TOUCHED_BYTES_MAX = 8
INTERESTING = (0, 1, 7, 8, 0x7F, 0x80, 0xFF)


@pytest.fixture(scope="module")
def described() -> ModuleType:
    """The memory of a library, as test_schema.py builds it."""
    path = Path(__file__).with_name("test_schema.py")
    spec = importlib.util.spec_from_file_location("described", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def damage(data: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, or a whole 4-byte number, or the end cut off."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, TOUCHED_BYTES_MAX)):
        at = chance.randrange(len(changed))
        changed[at] = chance.choice((*INTERESTING, chance.randrange(256)))
    if chance.random() < 0.3:
        at = chance.randrange(len(changed) // 4) * 4
        changed[at : at + 4] = chance.choice((0, 1, 2**31, 2**32 - 1, chance.randrange(2**32))).to_bytes(
            4, "little"
        )
    if chance.random() < 0.05:
        del changed[chance.randrange(1, len(changed)) :]
    return bytes(changed)


def read_all(memory: object, address: int) -> bool:
    """All that a schema offers; True when the description was accepted."""
    schema = Schema.read(memory, address)  # type: ignore[arg-type]
    for record in list(schema.records):
        schema.meta(record)
        with contextlib.suppress(HakmemError):
            schema.dtype(record)
    return bool(schema.records)


@pytest.mark.long("a second each; parts of the schema damaged at random", keep=1)
@pytest.mark.parametrize("part", ["BLOCK", "ENTRIES", "ROOTS", "TEXTS"])
def test_damaged(part: str, described: ModuleType, tally: Tally) -> None:
    chance, accepted = random.Random(part), 0
    for _ in range(ROUNDS * DAMAGED_PER_ROUND):
        memory = described.block(longer=chance.choice((0, 8)))
        address = getattr(described, part)
        memory.pieces[address] = damage(memory.pieces[address], chance)
        with contextlib.suppress(HakmemError):
            accepted += read_all(memory, described.BLOCK)
    assert accepted or part == "BLOCK", "else nothing but the first check was tried"
    tally(ROUNDS * DAMAGED_PER_ROUND, "sequences")


def test_all_lengths(described: ModuleType) -> None:
    memory = described.block()
    whole = memory.pieces[described.BLOCK]
    for length in range(HEAD.size):
        memory.pieces[described.BLOCK] = whole[:length]
        with pytest.raises(HakmemError):
            Schema.read(memory, described.BLOCK)
