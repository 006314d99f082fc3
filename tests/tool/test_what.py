"""hakmem what: what live blocks contain, and all about one address."""

import math
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hakmem.base.errors import HakmemError
from hakmem.blocks.block_map import State, read_block_map
from hakmem.blocks.content import Kind, entropy_of, prevailing_text, string_at_start, without_pointers
from hakmem.blocks.leaks import Options, find_leaks
from hakmem.blocks.one_block import what_is
from hakmem.blocks.sampling import Stratum, estimate
from hakmem.blocks.what import what_lives
from hakmem.blocks.whose import as_json
from hakmem.census.census import count
from hakmem.census.reading import read_full
from hakmem.layout.memory import Memory
from hakmem.target.demangle import cxx_name
from hakmem.target.target import Target, open_process
from results import Compile, Tally
from tool.conftest import Start, Tool
from tool.dumps import dumped, needs_gcore
from tool.fuzz_world import SECONDS, SEED
from tool.processes import PROGRAMS, begun, hakmem, hakmem_json, running, runs, wait_until

SCAN = (
    "--for",
    "0s",
)
COMMANDS = (["what"], ["leaks", *SCAN, "--wait", "50ms"], ["leaks", *SCAN, "--freeze"])

# ---- contents --------------------------------------------------------------------------------------


contents = runs("contents.cc", flags=["-rdynamic"], HAKMEM_HELPER_THREAD="0")


def known_of(process: subprocess.Popen[str]) -> dict[str, tuple[str, int]]:
    rows = (line.split() for line in process.said)  # type: ignore[attr-defined]
    return {name: (place, int(number)) for name, place, number in rows}


def blocks_of(answer: dict[str, Any], kind: str, name: str = "") -> tuple[float, float, float]:
    """How many blocks of this content there are, and the ends of the interval."""
    rows = {(row["kind"], row["name"]): row for row in answer["contents"]}
    assert (kind, name) in rows, (sorted(rows), answer["notes"])
    row = rows[kind, name]
    whole = answer["live_blocks"]
    share = row["blocks_share"]
    return share["share"] * whole, share["low"] * whole, share["high"] * whole


WANTED = {
    "orders": ("C++ object", "shop::Order"),
    "boxes": ("C++ object", "shop::Box<double>"),
    "wide": ("text, UTF-16", ""),
    "tables": ("pointers", ""),
    "zeros": ("zeros", ""),
    "noise": ("random bytes", ""),
    "devices": ("structure", "with &disk_operations"),
}


@pytest.mark.long("a second of processor time")
def test_all_that_is_read_is_judged_right(contents: subprocess.Popen[str]) -> None:
    """With as many draws as there are blocks nothing is estimated."""
    answer = hakmem_json("what", contents.pid, "--draws", "1000000")
    assert answer["drawn"] == answer["live_blocks"]
    known = known_of(contents)
    for name, (kind, label) in WANTED.items():
        found, low, high = blocks_of(answer, kind, label)
        assert low == pytest.approx(found, abs=0.1)
        assert high == pytest.approx(found, abs=0.1)
        assert abs(found - known[name][1]) <= 5, (name, found)  # the C library has blocks, too
    assert abs(blocks_of(answer, "C++ object", "shop::Order[]")[0] - 200) <= 1
    assert abs(blocks_of(answer, "text")[0] - known["texts"][1]) <= 5
    assert abs(blocks_of(answer, "numbers")[0] - known["integers"][1]) <= 5


def test_a_sample_says_the_same_within_its_interval(contents: subprocess.Popen[str]) -> None:
    """Twelve intervals of 99.99 % each, wider than those of 95 %, hold the truth."""
    answer = hakmem_json("what", contents.pid, "--draws", "2000")
    assert answer["drawn"] < answer["live_blocks"] / 2
    known = known_of(contents)
    for name, (kind, label) in WANTED.items():
        found, low, high = blocks_of(answer, kind, label)
        assert found - 2 * (found - low) - 5 <= known[name][1] <= found + 2 * (high - found) + 5, name
    assert sum(row["blocks_share"]["share"] for row in answer["contents"]) == pytest.approx(1, abs=1e-4)
    assert sum(row["bytes_share"]["share"] for row in answer["contents"]) == pytest.approx(1, abs=1e-4)


def test_one_size_class(contents: subprocess.Popen[str]) -> None:
    answer = hakmem_json("what", contents.pid, "--class", "170")
    (item,) = answer["classes"]
    assert item["block_bytes"] == 192
    assert answer["live_blocks"] == item["blocks"] >= 3000
    assert answer["contents"][0]["name"] == "shop::Order"


def test_texts_are_shown_only_if_asked_for(contents: subprocess.Popen[str]) -> None:
    plain, shown = (hakmem("what", contents.pid, *words).stdout for words in ([], ["--examples"]))
    assert "quick brown" not in plain
    assert "quick brown" in shown
    assert "quick brown" not in hakmem("what", contents.pid, "--json").stdout


def test_as_text(contents: subprocess.Popen[str]) -> None:
    text = hakmem("what", contents.pid).stdout
    for words in ("C++ object: shop::Order", "with &disk_operations", "By size class", "drawn at random"):
        assert words in text, words


@pytest.mark.long("a second of processor time")
def test_python_objects(lib: Path) -> None:
    code = (
        "import time\nclass Thing: pass\n"
        "kept = [Thing() for _ in range(3000)]\nfor thing in kept: thing.number = 5.5\n"
        "print('ready', flush=True)\ntime.sleep(300)"
    )
    with running(["/usr/bin/python3", "-c", code], lib, {"PYTHONMALLOC": "malloc"}) as process:
        answer = hakmem_json("what", process.pid, "--draws", "100000")
    names = {row["name"]: row["blocks_share"]["share"] * answer["live_blocks"] for row in answer["contents"]}
    assert abs(names["Thing"] - 3000) <= 2
    assert {"str", "dict", "tuple", "function", "code", "type"} <= names.keys()


@pytest.mark.long("3 seconds to write a core; test_core reads one")
@needs_gcore
def test_a_core_says_the_same(contents: subprocess.Popen[str], tmp_path: Path) -> None:
    core = dumped(contents.pid, tmp_path)
    alive, dead = (hakmem_json("what", one, "--draws", "1000000") for one in (contents.pid, core))
    assert dead["is_core"]
    assert dead["live_blocks"] == alive["live_blocks"]
    for kind, label in WANTED.values():
        assert blocks_of(dead, kind, label)[0] == pytest.approx(blocks_of(alive, kind, label)[0], abs=0.5)
    place = known_of(contents)["single"][0]
    one, other = (hakmem_json("what", name, place) for name in (contents.pid, core))
    for key in ("start", "block_bytes", "state", "referrer_count", "content"):
        assert one[key] == other[key], key


# ---- one address -----------------------------------------------------------------------------------


def test_a_live_block(contents: subprocess.Popen[str]) -> None:
    place = known_of(contents)["single"][0]
    inside = hex(int(place, 16) + 40)
    answer = hakmem_json("what", contents.pid, inside, "--path")
    assert (answer["start"], answer["offset"], answer["block_bytes"]) == (place, 40, 3072)
    assert (answer["state"], answer["tier"], answer["is_resident"]) == ("live", "mid", True)
    # The other thread asked for it.
    assert answer["owner"]["thread_id"] not in (0, contents.pid)
    assert answer["owner"]["state"] == "running"
    assert answer["call_site"] is None
    assert any("single" in one["where"] and one["kind"] == "static data" for one in answer["referrers"])
    assert [one["where"].endswith("single+0x0") for one in answer["path"]] == [True]


def test_the_way_to_a_root(contents: subprocess.Popen[str]) -> None:
    """The first text is held by an array of globals, and by blocks."""
    answer = hakmem_json("what", contents.pid, known_of(contents)["single"][0])
    block = int(answer["start"], 16) + 40
    text = int.from_bytes(open_process(contents.pid).memory.read(block, 8), "little")
    found = hakmem_json("what", contents.pid, hex(text), "--path")
    assert found["content"]["kind"] == "text"
    assert found["content"]["text"] == ""
    holders = {one["block"] for one in found["referrers"]}
    assert answer["start"] in holders
    assert found["path"][-1]["block"] is None
    assert "quick brown" in hakmem("what", contents.pid, hex(text), "--examples").stdout


def test_a_freed_block(contents: subprocess.Popen[str]) -> None:
    answer = hakmem_json("what", contents.pid, known_of(contents)["freed"][0])
    assert answer["state"] == "magazine"
    assert answer["cached_by"]["thread_id"] == contents.pid
    assert "freed" in hakmem("what", contents.pid, known_of(contents)["freed"][0]).stdout


def test_a_big_block(contents: subprocess.Popen[str]) -> None:
    answer = hakmem_json("what", contents.pid, known_of(contents)["big"][0])
    assert answer["tier"] == "big"
    assert answer["block_bytes"] >= 5 << 20
    assert answer["owner"] is None


def test_states(compiled: Compile, stepper: Start) -> None:
    """Every block of a program that frees half of them in another thread: the states add up to the census."""
    words = [compiled("blocks"), "-r", "48:5000", "3000:200", "100000:20", "5000000:2"]
    program = stepper(words, "begun", HAKMEM_HELPER_THREAD="0")
    program.go_on("allocated")
    program.go_on("freed")
    target = open_process(program.pid)
    block_map, census = read_block_map(target), count(read_full(target))
    counts = np.bincount(block_map.states, minlength=len(State)).tolist()
    of_slabs = [item for item in census.classes if item.tier != "large"]
    places = block_map.places_of(np.arange(block_map.block_count))
    in_slab = block_map.places.slab_rows[places] >= 0
    slabs = np.bincount(block_map.states[in_slab], minlength=len(State)).tolist()
    assert slabs[State.LIVE] == sum(item.live_blocks for item in of_slabs)
    assert slabs[State.FREE] == sum(item.free_blocks for item in of_slabs)
    assert slabs[State.REMOTE] == sum(item.remote_blocks for item in of_slabs)
    assert slabs[State.MAGAZINE] == sum(item.magazine_blocks for item in of_slabs)
    assert slabs[State.REMOTE] > 0
    assert counts[State.LIVE] - slabs[State.LIVE] == 10 + 1  # Large and Big
    # Every address in a block leads to it.
    blocks = np.random.default_rng(1).choice(block_map.block_count, 2000)
    starts, sizes = block_map.starts_of(blocks), block_map.sizes_of(blocks)
    for into in (np.zeros(len(blocks), np.int64), sizes // 2, sizes - 1):
        found, offsets = block_map.find(starts + into.astype(np.uint64))
        assert (found == blocks).all()
        assert (offsets == into).all()


@pytest.mark.parametrize("address", ["0x1000", "0x7fffffffffffffff", "0xffffffffffffffff", "0x0"])
def test_no_block_is_there(contents: subprocess.Popen[str], address: str) -> None:
    answer = hakmem_json("what", contents.pid, address)
    assert "not mapped" in answer["place"]
    assert answer["start"] is None


def test_an_address_outside_of_hakmem(contents: subprocess.Popen[str]) -> None:
    maps = open_process(contents.pid).process.maps()  # type: ignore[union-attr]
    code = next(one for one in maps if one.file_name.startswith("libc"))
    assert "libc" in hakmem_json("what", contents.pid, hex(code.start + 64))["place"]
    stack = next(one for one in maps if one.path == "[stack]")
    assert "[stack]" in hakmem_json("what", contents.pid, hex(stack.end - 64))["place"]


# ---- refusals --------------------------------------------------------------------------------------


def test_wrong_words(tool: Tool, contents: subprocess.Popen[str], tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a core")
    for words, status, said in (
        (["what", "nosuch"], 2, "neither a PID nor a core file"),
        (["leaks", "nosuch"], 2, "neither a PID nor a core file"),
        (["what", contents.pid, "hello"], 2, "is not an address"),
        (["what", contents.pid, "0x1" + "0" * 16], 2, "is not an address; write it as 0x7f12…"),
        (["what", contents.pid, "123"], 2, "write it as 0x123, if it is hexadecimal"),
        (["what", contents.pid, "7f30a4c01200"], 2, "write it as 0x7f30a4c01200, if"),
        (["what", contents.pid, "list"], 2, "write it as 0x7f12…"),
        (["what", contents.pid, "--path"], 2, "--path needs an address"),
        (["what", contents.pid, "--class", "9999999"], 1, "no size class has blocks of 9999999 bytes"),
        (["what", text], 1, "is not a core dump"),
        (["leaks", text], 1, "is not a core dump"),
    ):
        ended = tool(*words)
        assert ended.status == status, (words, ended)
        assert said in " ".join(ended.stderr.split()), (words, ended)


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_process_that_ends_in_the_middle(
    lib: Path, compile_c: Compile, tool: Tool, command: list[str]
) -> None:
    """It is killed at any moment: the answer of before, or one sentence."""
    chance = random.Random(f"{SEED} {command}")
    statuses = set()
    until_s = time.monotonic() + SECONDS
    while time.monotonic() < until_s:
        with running([compile_c(PROGRAMS / "busy.c"), "3600"], lib) as process:
            delay_s = chance.random() * 0.6
            killer = subprocess.Popen(["sh", "-c", f"sleep {delay_s:.3f}; kill -9 {process.pid}"])
            ended = tool(command[0], process.pid, *command[1:])
            killer.wait()
        assert ended.status in (0, 4), ended
        assert ended.status == 0 or len(ended.stderr.splitlines()) == 1, ended.stderr
        statuses.add(ended.status)


LOSE_AND_EXEC = """
import ctypes, os
lose = ctypes.CDLL(None).malloc
for _ in range(100):
    lose(5000)
print("ready", flush=True)
input()
os.execv("/bin/sleep", ["sleep", "60"])
"""


def test_a_process_that_becomes_another_program(stepper: Start) -> None:
    """Between two scans."""
    program = stepper(["/usr/bin/python3", "-c", LOSE_AND_EXEC], "ready")
    target = open_process(program.pid)

    def become(_seconds: float) -> None:
        program.go_on()
        wait_until(
            lambda: b"sleep" in Path(f"/proc/{program.pid}/cmdline").read_bytes()[:8], "it does not exec"
        )

    with pytest.raises(HakmemError, match="exec"):
        find_leaks(target, Options(sleep=become))


# ---- damaged memory --------------------------------------------------------------------------------


class Damaged(Memory):
    """Another memory, of which some words are anything."""

    def __init__(self, memory: Memory, chance: random.Random) -> None:
        self._memory = memory
        self._chance = chance
        self.share = chance.choice([0.0001, 0.001, 0.01])

    def gather(self, addresses: np.ndarray, counts: np.ndarray) -> np.ndarray:
        data = self._memory.gather(addresses, counts)
        words = data[: len(data) // 8 * 8].view(np.uint64)
        for _ in range(int(len(words) * self.share) if self._chance.random() < 0.5 else len(words) < 64):
            words[self._chance.randrange(len(words))] = self.anything(words) if len(words) else 0
        return data

    def anything(self, words: np.ndarray) -> int:
        kind = self._chance.random()
        if kind < 0.3:
            return self._chance.getrandbits(64)
        if kind < 0.6:
            return int(words[self._chance.randrange(len(words))]) ^ 1 << self._chance.randrange(64)
        return self._chance.choice([0, 1, (1 << 64) - 1, 1 << 63, int(words[0]) + 8 & (1 << 64) - 1])


@pytest.mark.long("a second; memory damaged at random")
@pytest.mark.timeout(SECONDS * 4 + 200)
def test_torn_and_damaged_memory(contents: subprocess.Popen[str], tally: Tally) -> None:
    """One sentence, or an answer; nothing else."""
    chance = random.Random(SEED)
    address = int(known_of(contents)["single"][0], 16)
    process = open_process(contents.pid)
    cases, until_s = 0, time.monotonic() + SECONDS
    steps = (
        lambda target: as_json(what_lives(target, draws=300)),
        lambda target: as_json(find_leaks(target, Options(wait_s=0.001, sleep=lambda _: None))),
        lambda target: what_is(target, address, with_path=chance.random() < 0.3).to_json(),
    )
    while time.monotonic() < until_s:
        memory = Damaged(process.memory, chance)
        target = Target(memory, process.schema, process.pid, process.command, process.process)
        try:
            chance.choice(steps)(target)
        except HakmemError as error:
            assert len(str(error).splitlines()) == 1
        cases += 1
    tally(cases, "sequences")


# ---- arithmetic ------------------------------------------------------------------------------------


@pytest.mark.long("a second each; a simulation for each share", keep=1)
@pytest.mark.parametrize("truth", [0.003, 0.05, 0.5, 0.97])
@pytest.mark.parametrize("by_bytes", [False, True])
def test_intervals_cover_the_truth(truth: float, by_bytes: bool) -> None:
    """95 of 100, over strata of different sizes; a few more for rare contents."""
    chance = np.random.default_rng(int(truth * 1000))
    sizes_of = [(30000, 64), (8000, 200), (500, 3000), (60, 40000)]
    has_it = [
        chance.random(blocks) < truth * factor
        for (blocks, _), factor in zip(sizes_of, (1, 0.5, 1, 1), strict=True)
    ]
    whole = sum(blocks * (size if by_bytes else 1) for blocks, size in sizes_of)
    real = (
        sum(hits.sum() * (size if by_bytes else 1) for hits, (_, size) in zip(has_it, sizes_of, strict=True))
        / whole
    )
    covered, rounds = 0, 600
    for _ in range(rounds):
        strata, hits = [], []
        for (blocks, size), all_hits in zip(sizes_of, has_it, strict=True):
            drawn = chance.choice(blocks, min(blocks, 40 if blocks < 1000 else 400), replace=False)
            strata.append(Stratum(blocks, blocks * size, drawn, np.full(len(drawn), size)))
            hits.append(all_hits[drawn])
        weights = [float(s.bytes if by_bytes else s.blocks) for s in strata]
        share = estimate(strata, hits, weights, by_bytes)
        assert share.low <= share.share <= share.high
        covered += share.low <= real <= share.high
    assert covered / rounds >= 0.93
    assert covered / rounds <= (0.985 if 0.01 < truth < 0.95 else 1)


def test_kinds_of_bytes() -> None:
    chance = random.Random(1)
    noise = chance.randbytes(512)
    assert without_pointers(np.frombuffer(noise, np.uint64), noise).kind is Kind.RANDOM
    floats = np.linspace(1, 1000, 64)
    assert without_pointers(floats.view(np.uint64), floats.tobytes()).kind is Kind.NUMBERS
    small = np.arange(64, dtype=np.int32)
    assert without_pointers(small.view(np.uint64), small.tobytes()).kind is Kind.NUMBERS
    assert entropy_of(bytes(100)) == 0
    assert entropy_of(bytes(range(256))) == pytest.approx(8)
    assert math.isclose(entropy_of(b"ab" * 50), 1)


@pytest.mark.parametrize(
    ("data", "is_text"),
    [
        (b"hello, world\0\0\0\0", True),
        (b"hello, world\0" + bytes(range(128, 200)), True),  # what the block held before
        ("grüße aus köln".encode() + b"\0" * 8, True),
        (b"\x01\x02\x03\x04a few words after a head of four bytes", True),
        (b"abc\0\0\0\0\0", False),
        (bytes(range(1, 30)), False),
        (b"\0" * 8 + b"ab", False),
    ],
)
def test_text(data: bytes, is_text: bool) -> None:
    found = string_at_start(data, 0) or prevailing_text(data, 0)
    assert (found is not None) == is_text


def test_demangling() -> None:
    if cxx_name("_ZTVN4shop5OrderE") is None:
        pytest.skip("no C++ library is installed")
    assert cxx_name("_ZTVN4shop5OrderE") == "vtable for shop::Order"
    assert cxx_name("main") is None
    assert cxx_name("\0") is None
    assert cxx_name("ü") is None


def test_a_signal_to_the_tool_ends_it(contents: subprocess.Popen[str]) -> None:
    with begun("leaks", *SCAN, "--wait", "60s", contents.pid) as process:
        wait_until(lambda: b"leaks" in Path(f"/proc/{process.pid}/cmdline").read_bytes(), "it does not start")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert "Traceback" not in said
