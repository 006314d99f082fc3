"""Recordings, core dumps and programs, damaged or cut off: read as far as they go, or told in a line."""

import os
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from results import Tally
from tool.dumps import NO_GCORE
from tool.forked import forked, is_clean
from tool.fuzz_world import SECONDS, World, counted, made, process, world

__all__ = ["made", "process", "world"]  # fixtures

pytestmark = pytest.mark.timeout(SECONDS * 4 + 200)

NUMBERS = (0, 1, 8, 0x7F, 0xFF, 0x1000, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1)

# ---- files ------------------------------------------------------------------------------------------


def changed(data: bytes, chance: random.Random) -> bytes:
    """Damaged somewhere, or cut off."""
    new = bytearray(data)
    for _ in range(chance.randint(0, 6)):
        at = chance.randrange(max(1, len(new) - 8))
        kind = chance.random()
        if kind < 0.4:
            new[at] = chance.randrange(256)
        elif kind < 0.7:
            new[at : at + 8] = chance.choice(NUMBERS).to_bytes(8, "little")
        elif kind < 0.85:
            del new[at : at + chance.randrange(200)]
        else:
            new[at:at] = new[at : at + chance.randrange(200)]
    if chance.random() < 0.2:
        del new[chance.randrange(len(new)) :]
    return bytes(new)


JSON_PIECES = (
    b"null",
    b"-1",
    b"1e308",
    b"9" * 40,
    b'""',
    b"[]",
    b"{}",
    b"true",
    b"0",
    b"0.5",
    b'"x"',
    b"NaN",
)


def changed_json(data: bytes, chance: random.Random) -> bytes:
    """Still JSON mostly: values, names and lines exchanged."""
    values = list(re.finditer(rb"(?<=:)(-?[\d.e+]+|\"[^\"]*\"|null)", data))
    for match in sorted(chance.sample(values, chance.randint(1, 4)), key=lambda m: -m.start()):
        data = data[: match.start()] + chance.choice(JSON_PIECES) + data[match.end() :]
    lines = data.splitlines(keepends=True)
    if chance.random() < 0.2:
        chance.shuffle(lines)
    if chance.random() < 0.2:
        data_names = (b'"classes"', b'"totals"', b'"memory"', b'"process"', b'"threads"', b'"meta"')
        return b"".join(lines).replace(chance.choice(data_names), b'"other"', chance.choice((1, -1)))
    return b"".join(lines)


@pytest.mark.long("2 seconds; recordings damaged at random")
def test_recordings(world: World, tally: Tally) -> None:
    data, path = world.recording.read_bytes(), world.folder / "bad.json"
    reported = 0
    for _ in counted(tally):
        change = changed_json if world.chance.random() < 0.7 else changed
        path.write_bytes(change(data, world.chance))
        ending = forked(["record", path, "-o", "page"], cwd=world.folder)
        is_clean(ending, f"a recording kept as {keep(path)}" if ending.status not in (0, 1) else "page")
        reported += ending.status == 0
    assert reported, "else nothing but the first check was tried"


def keep(path: Path) -> Path:
    """For whoever looks into a failure."""
    return Path(shutil.copy(path, path.with_suffix(".kept")))


def headers_of(core: bytes) -> list[int]:
    """Where something begins or ends: the head, each segment's header and content, each note."""
    (table,), (count,) = struct.unpack_from("<Q", core, 32), struct.unpack_from("<H", core, 56)
    places = {0, 4, 16, 32, 56, 63, 64, table, table + count * 56}
    for number in range(count):
        at = table + number * 56
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", core, at)
        places |= {at, at + 8, offset, offset + size}
        if kind == 4:  # PT_NOTE
            place = offset
            while place + 12 <= offset + size:
                name, length = struct.unpack_from("<II", core, place)
                places |= {place, place + 4, place + 12, place + 12 + name}
                place += 12 + (name + 3) // 4 * 4 + (length + 3) // 4 * 4
    return sorted(place for place in places if place <= len(core))


@pytest.fixture
def core(world: World) -> Path:
    """A copy that may be damaged."""
    if world.core is None:
        pytest.skip(NO_GCORE)
    path = world.folder / "core"
    subprocess.run(["cp", "--sparse=always", str(world.core), str(path)], check=True)
    return path


def test_cores_of_every_length(world: World, core: Path, tally: Tally) -> None:
    """From the whole one down: at each border, before and behind it, and at places in between."""
    places = headers_of(core.read_bytes())
    size = core.stat().st_size
    near = {place + step for place in places for step in (-1, 0, 1)}
    near |= {world.chance.randrange(size) for _ in range(20)}
    wanted = sorted((place for place in near if 0 <= place <= size), reverse=True)
    room = int(SECONDS * 8)
    if len(wanted) > room:
        wanted = sorted(world.chance.sample(wanted, room), reverse=True)
    for length in wanted:
        os.truncate(core, length)
        command = world.one_of("stat", "why", "what", "leaks")
        is_clean(forked([command, core], cwd=world.folder), (command, length))
    tally(len(wanted), "sequences")


@pytest.mark.long("a second; cores damaged at random")
def test_damaged_cores(world: World, core: Path, tally: Tally) -> None:
    """Headers, notes, and hakmem's own structures in the memory."""
    assert world.core is not None
    whole = world.core.read_bytes()
    borders = headers_of(whole)
    headers = next(place for place in borders if place > 64)
    file = os.open(core, os.O_RDWR)
    for _ in counted(tally):
        places = [damaged_place(world, file, len(whole), headers) for _ in range(world.chance.randint(1, 40))]
        for place in places:
            value = world.chance.choice((*NUMBERS, world.chance.getrandbits(64)))
            os.pwrite(file, value.to_bytes(8, "little")[: world.chance.choice((1, 4, 8))], place)
        command = world.one_of("stat", "why", "what", "leaks")
        is_clean(forked([command, core], cwd=world.folder), (command, places))
        for place in places:
            os.pwrite(file, whole[place : place + 8], place)
    os.close(file)


def damaged_place(world: World, file: int, size: int, headers: int) -> int:
    """In the headers, or where something was written."""
    if world.chance.random() < 0.1:
        return world.chance.randrange(headers * 4)
    data = os.lseek(file, world.chance.randrange(size - 8192), os.SEEK_DATA)
    return min(size - 8, data + world.chance.randrange(4096 - 8))


@pytest.mark.long("2 seconds; programs damaged at random")
def test_damaged_programs(world: World, tally: Tally) -> None:
    """doctor looks at a program that is asked for; nothing damaged is run."""
    data = Path(shutil.which("true") or "").read_bytes()
    program = world.folder / "program"
    for _ in counted(tally):
        program.write_bytes(changed(data, world.chance))
        program.chmod(0o644 if world.chance.random() < 0.1 else 0o755)
        words = world.chance.choice((["doctor", "--", program], ["stat", program]))
        is_clean(forked(words, cwd=world.folder), words)
