"""`hakmem why`: lines that add up to RSS, and parts of known size in the right ones."""

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hakmem.census.catalogue import POOL, RANGES_CACHED, RANGES_FREE
from hakmem.layout.occupancy import bits_before, clip_to_capacity, set_bytes_by_page
from hakmem.target.mappings import Outside, classify
from hakmem.target.process import Mapping
from results import Compile, Find
from tool.dumps import dumped, needs_gcore
from tool.processes import PROGRAMS, hakmem, hakmem_json, redis_load, running, running_redis, wait_until

PAGE = 4096
SUM_TOLERANCE = 0.01  # of RSS, the issue's
QUARANTINE_BYTES = 1 << 18  # of each thread, unless HAKMEM_QUARANTINE_BYTES says otherwise
HUGE_BYTES = 200 << 30  # of huge.c, untouched
BUSY_REDIS_BYTES = 24 << 20  # more than it has with 10,000 of the 20,000 keys
NEVER_PURGED = {"HAKMEM_DECAY_MS": "86400000"}

Answer = dict[str, Any]


def line(answer: Answer, name: str) -> Answer:
    """The line of this name; an empty one if it has no bytes."""
    found = [item for item in answer["lines"] if item["name"] == name]
    return found[0] if found else {"bytes": 0, "details": []}


def of_blocks(answer: Answer, name: str, block_bytes: int | None) -> Answer:
    """The detail of a line that is about blocks of a size (None: Big ones)."""
    return next(detail for detail in line(answer, name)["details"] if detail["block_bytes"] == block_bytes)


def total(answer: Answer) -> int:
    """The sum of the lines."""
    return sum(item["bytes"] for item in answer["lines"])


def rss_of(pid: int) -> int:
    """As the kernel sums it up."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(next(row for row in rollup.splitlines() if row.startswith("Rss:")).split()[1])


# ---- a program of known parts -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def known(lib: Path, compile_c: Compile) -> Iterator[tuple[dict[str, int], Answer, int]]:
    """The parts that the program says, what the tool says, and RSS by the kernel."""
    with running([compile_c(PROGRAMS / "known.c")], lib, NEVER_PURGED) as process:
        said = {name: int(size) for name, size in (row.split() for row in process.said)}
        yield said, hakmem_json("why", process.pid), rss_of(process.pid)


def test_lines_add_up_to_rss(known: tuple[dict[str, int], Answer, int]) -> None:
    _, answer, rss_bytes = known
    assert answer["rss_bytes"] == rss_bytes
    assert total(answer) == pytest.approx(rss_bytes, rel=SUM_TOLERANCE)


def test_lines_are_sorted_and_explained(known: tuple[dict[str, int], Answer, int]) -> None:
    _, answer, _ = known
    sizes = [item["bytes"] for item in answer["lines"]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size > 0 for size in sizes)
    for item in answer["lines"]:
        assert item["advice"].endswith(".")
        assert isinstance(item["exact"], bool)


@pytest.mark.parametrize(
    ("part", "name", "block_bytes", "slack"),
    [
        ("small", "live data", 64, 2 * PAGE),
        ("holed_live", "live data", 1024, 2 * PAGE),
        ("large", "live data", 124 * 1024, 50 * PAGE),
        ("big_touched", "live data", None, 2 * PAGE),
        ("holed_free", "free blocks in used slabs", 1024, 512 * 1024),
    ],
)
def test_blocks_are_where_they_belong(
    known: tuple[dict[str, int], Answer, int], part: str, name: str, block_bytes: int | None, slack: int
) -> None:
    """`slack`: free blocks may also lie in magazines; a Large block ends within a page."""
    said, answer, _ = known
    assert of_blocks(answer, name, block_bytes)["bytes"] == pytest.approx(said[part], abs=slack)


@pytest.mark.parametrize(
    ("part", "name", "slack"),
    [
        ("large_freed", "cached Large blocks", 2 * PAGE),
        ("range_freed", "free ranges waiting for purge", 2 * PAGE),
        ("stack", "thread stacks", 256 * 1024),
        ("brk", "other malloc", 2 * PAGE),
        ("anonymous", "other anonymous", 64 * 1024),
        ("shared", "shared memory", 2 * PAGE),
    ],
)
def test_lines_hold_what_they_say(
    known: tuple[dict[str, int], Answer, int], part: str, name: str, slack: int
) -> None:
    said, answer, _ = known
    assert line(answer, name)["bytes"] == pytest.approx(said[part], abs=slack)


def test_freed_and_cached_blocks_of_a_class_add_up(known: tuple[dict[str, int], Answer, int]) -> None:
    """To the block: a freed one lies in its slab or in a magazine, nowhere else."""
    said, answer, _ = known
    free = of_blocks(answer, "free blocks in used slabs", 1024)
    freed_blocks = (free["capacity_blocks_per_slab"] - free["live_blocks_per_slab"]) * free["slabs"]
    assert freed_blocks * 1024 == pytest.approx(said["holed_free"], rel=0.01)


def test_rounding_is_estimated_from_requests(known: tuple[dict[str, int], Answer, int]) -> None:
    _, answer, _ = known
    rounding = of_blocks(answer, "rounding inside blocks", 1024)
    assert rounding["mean_request_bytes"] == pytest.approx(1000, abs=1)
    assert rounding["bytes"] == pytest.approx(24 * 10000, rel=0.05)
    assert not line(answer, "rounding inside blocks")["exact"]


def test_magazines_are_told_by_thread(known: tuple[dict[str, int], Answer, int]) -> None:
    """The second thread keeps at most what it freed last."""
    said, answer, _ = known
    holders = line(answer, "magazines")["details"]
    assert len({holder["thread_id"] for holder in holders} - {0}) == 2
    assert answer["pid"] in {holder["thread_id"] for holder in holders}
    assert {holder["name"] for holder in holders} == {answer["command"][0].rsplit("/", 1)[-1][:15]}
    assert 0 < min(holder["bytes"] for holder in holders) <= said["cached"]


def test_untouched_blocks_are_not_resident(known: tuple[dict[str, int], Answer, int]) -> None:
    """Live to malloc, but in no line: never written, or only read (the kernel's page of zeros)."""
    said, answer, _ = known
    assert answer["not_resident_live_bytes"] >= said["untouched_mid"] - 64 * PAGE
    assert not [item for item in line(answer, "live data")["details"] if item["block_bytes"] == 20480]


def test_untouched_memory_is_told_apart(lib: Path, compile_c: Compile) -> None:
    """Blocks above 64 KiB, too: live exceeds RSS."""
    with running([compile_c(PROGRAMS / "huge.c")], lib) as process:
        answer = hakmem_json("why", process.pid)
        assert 0.99 * HUGE_BYTES < answer["not_resident_live_bytes"] < 1.01 * HUGE_BYTES
        assert any("never touched, or swapped out" in note for note in answer["notes"])
        once = " ".join(hakmem("top", process.pid, "--every", "100ms").stdout.split())
        assert re.search(r"live exceeds RSS: at least 200 GiB of it is not resident", once)


def test_advice_names_options_that_help(lib: Path, compile_c: Compile) -> None:
    """HAKMEM_BIG_CACHE_BYTES bounds the lines whose advice names it."""
    option = "HAKMEM_BIG_CACHE_BYTES"
    program = [compile_c(PROGRAMS / "freed_memory.c")]
    with (
        running(program, lib, NEVER_PURGED) as one,
        running(program, lib, NEVER_PURGED | {option: "0"}) as other,
    ):
        wait_until(lambda: rss_of(other.pid) < 0.8 * rss_of(one.pid), f"{option}=0 frees nothing")
        default, lowest = (hakmem_json("why", process.pid) for process in (one, other))
    for figure in (POOL, RANGES_CACHED, RANGES_FREE):
        name = figure.label
        before, after = (line(answer, name)["bytes"] for answer in (default, lowest))
        assert before > 1 << 20, name
        assert (after < before / 2) == (option in figure.advice), (name, before, after)


def test_memory_beside_a_files_data_is_not_the_files(lib: Path, compile_c: Compile) -> None:
    with running([compile_c(PROGRAMS / "beside_data.c")], lib) as process:
        answer = hakmem_json("why", process.pid)
    assert line(answer, "other anonymous")["bytes"] >= 64 << 20
    assert line(answer, "files")["bytes"] < 16 << 20


def test_verdict_names_the_shares(known: tuple[dict[str, int], Answer, int]) -> None:
    _, answer, _ = known
    share = 100 * line(answer, "live data")["bytes"] / answer["rss_bytes"]
    assert answer["verdict"].startswith(f"{share:.0f} % of RSS is live data of the program")
    assert "free blocks in used slabs" in answer["verdict"]


def test_text_fits_the_terminal(known: tuple[dict[str, int], Answer, int]) -> None:
    text = hakmem("why", known[1]["pid"]).stdout
    assert "sum of the lines" in text
    assert "Verdict:" in text
    assert max(map(len, text.splitlines())) <= 110


def test_hardened(lib: Path, compile_c: Compile) -> None:
    """Memory in quarantine has a line of its own; quarantined ranges have no pages."""
    hardened = {**NEVER_PURGED, "HAKMEM_HARDEN": "1"}
    with running([compile_c(PROGRAMS / "known.c")], lib, hardened) as process:
        said = {name: int(size) for name, size in (row.split() for row in process.said)}
        answer = hakmem_json("why", process.pid)
        assert answer["rss_bytes"] == rss_of(process.pid)
    assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    waiting = line(answer, "blocks in quarantine")
    assert 0.9 * QUARANTINE_BYTES < waiting["bytes"] < 2 * QUARANTINE_BYTES
    assert waiting["exact"]
    assert {answer["pid"]} < {holder["thread_id"] for holder in waiting["details"]}
    assert not line(answer, "magazines")["bytes"]
    assert line(answer, "cached Large blocks")["bytes"] == 0
    assert of_blocks(answer, "live data", 80)["live_blocks"] == said["small"] // 64
    holed = of_blocks(answer, "live data", 1024)
    assert holed["live_blocks"] == pytest.approx(said["holed_live"] // 1000, abs=2)


# ---- whole programs ---------------------------------------------------------------------------------


def test_python(lib: Path) -> None:
    """Half of a list of long strings deleted: half of their bytes stay as free blocks."""
    code = "x = [bytes(3000) for _ in range(20000)]; del x[::2]; print('ready', flush=True); input()"
    words = ["/usr/bin/python3", "-c", code.replace("input()", "import time; time.sleep(60)")]
    with running(words, lib, NEVER_PURGED) as process:
        answer = hakmem_json("why", process.pid)
        assert answer["rss_bytes"] == rss_of(process.pid)
    assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    assert of_blocks(answer, "live data", 3072)["bytes"] == pytest.approx(10000 * 3033, rel=0.02)
    assert of_blocks(answer, "free blocks in used slabs", 3072)["bytes"] == pytest.approx(
        10000 * 3072, rel=0.02
    )


@pytest.mark.long("a second of processor time")
def test_redis_at_rest_and_under_load(lib: Path, program: Find) -> None:
    program("redis-benchmark")
    with running_redis(program("redis-server"), lib) as (process, port):
        load = redis_load(port, "-t", "set", "-n", "10000000", "-r", "20000", "-d", "900", "-P", "16")
        try:
            wait_until(lambda: rss_of(process.pid) > BUSY_REDIS_BYTES, "redis does not fill")
            busy = hakmem_json("why", process.pid)
        finally:
            load.kill()
            load.wait()
        process.send_signal(signal.SIGSTOP)
        rest = hakmem_json("why", process.pid)
        assert rest["rss_bytes"] == rss_of(process.pid)
    for answer in (busy, rest):
        assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    assert of_blocks(rest, "live data", 912)["live_blocks"] >= 9000  # of a class that fits them


def test_stopped_process(lib: Path, compile_c: Compile) -> None:
    """A hung process is read like any other."""
    with running([compile_c(PROGRAMS / "known.c")], lib) as process:
        process.send_signal(signal.SIGSTOP)
        answer = hakmem_json("why", process.pid)
    assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)


def test_forked_child(lib: Path) -> None:
    """Its pages are shared with its parent; they count as its RSS all the same."""
    code = (
        "import os, time\nx = [bytes(500) for _ in range(50000)]\n"
        "child = os.fork()\nif child: print(child); print('ready', flush=True)\ntime.sleep(60)"
    )
    with running(["/usr/bin/python3", "-c", code], lib) as process:
        child = int(process.said[0])
        try:
            answer = hakmem_json("why", child)
            assert answer["rss_bytes"] == rss_of(child)
        finally:
            os.kill(child, signal.SIGKILL)
    assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    assert line(answer, "live data")["bytes"] > 50000 * 500


def test_huge_pages(lib: Path) -> None:
    """A heap that grows has them; how much of RSS lies in them."""
    code = "import time; x = [bytes(1000) for _ in range(200000)]; print('ready', flush=True); time.sleep(60)"
    with running([sys.executable, "-c", code], lib) as process:
        smaps = Path(f"/proc/{process.pid}/smaps").read_text()
        huge_kib = sum(int(row.split()[1]) for row in smaps.splitlines() if row.startswith("AnonHugePages:"))
        answer = hakmem_json("why", process.pid)
    assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    assert answer["huge_bytes"] == 1024 * huge_kib
    if not huge_kib:
        pytest.skip("the kernel gave no huge page: memory is too fragmented, or they are switched off")
    assert any(note.startswith("In huge pages: ") for note in answer["notes"])


def test_statically_linked(static_lib: Path, lib: Path, compile_c: Compile) -> None:
    """The library is in the program; its data then count with the program's."""
    program = compile_c(PROGRAMS / "known.c", static_lib)
    with running([program], lib, {**NEVER_PURGED, "LD_PRELOAD": ""}) as process:
        answer = hakmem_json("why", process.pid)
        assert answer["rss_bytes"] == rss_of(process.pid)
    assert total(answer) == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    assert of_blocks(answer, "live data", 64)["bytes"] == pytest.approx(6400000, abs=2 * PAGE)


@needs_gcore
def test_core(lib: Path, compile_c: Compile, tmp_path: Path) -> None:
    """The same parts out of a dump of the same process, all of them estimates."""
    with running([compile_c(PROGRAMS / "known.c")], lib, NEVER_PURGED) as process:
        alive = hakmem_json("why", process.pid)
        core = dumped(process.pid, tmp_path)
    dead = hakmem_json("why", core)
    assert dead["is_core"]
    assert not [item for item in dead["lines"] if item["exact"]]
    assert {item["name"] for item in dead["lines"]} < {item["name"] for item in alive["lines"]}
    for name in ("live data", "free blocks in used slabs", "cached Large blocks"):
        assert line(dead, name)["bytes"] == pytest.approx(line(alive, name)["bytes"], rel=0.01)
    assert "does not record which pages were resident" in dead["notes"][0]
    assert "of hakmem's memory is live data" in dead["verdict"]


# ---- refusals ---------------------------------------------------------------------------------------


def test_what_is_no_target() -> None:
    step = hakmem("why", "no-such-thing", status=2)
    assert "neither a PID nor a core file" in step.stderr


def test_process_without_hakmem() -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        try:
            step = hakmem("profile", process.pid, status=1)
        finally:
            process.kill()
    assert "keeps no call sites, counters or events; hakmem run -- sleep … does" in step.stderr


def test_process_that_is_gone() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    assert f"{process.pid}" in hakmem("why", process.pid, status=4).stderr


# ---- arithmetic -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block_bytes", "slots"), [(8, 1), (48, 1), (112, 1), (1280, 1), (5120, 1), (12288, 2), (28672, 4)]
)
def test_bytes_by_page_match_a_byte_by_byte_count(block_bytes: int, slots: int) -> None:
    """Against the same with one truth value per byte."""
    slab_bytes, slab_count = slots * 65536, 5
    capacity = slab_bytes // block_bytes
    generator = np.random.default_rng(block_bytes)
    bits = generator.random((slab_count, capacity)) < 0.4
    words = np.zeros((slab_count, -(-capacity // 64)), np.uint64)
    for block in range(capacity):
        words[:, block // 64] |= bits[:, block].astype(np.uint64) << np.uint64(block % 64)
    by_byte = np.zeros((slab_count, slab_bytes), bool)
    by_byte[:, : capacity * block_bytes] = np.repeat(bits, block_bytes, axis=1)
    expected = by_byte.reshape(slab_count, -1, PAGE).sum(axis=2)
    assert (set_bytes_by_page(words, block_bytes, slab_bytes // PAGE, PAGE) == expected).all()


def test_bits_before_a_position() -> None:
    rng = random.Random(1)
    value = rng.getrandbits(128)
    words = np.array([[value & (1 << 64) - 1, value >> 64]], np.uint64)
    positions = np.arange(129)
    expected = [(value & (1 << position) - 1).bit_count() for position in range(129)]
    assert bits_before(words, positions)[0].tolist() == expected


def test_bits_beyond_the_capacity_do_not_count() -> None:
    words = np.full((1, 2), np.uint64(2**64 - 1))
    assert np.bitwise_count(clip_to_capacity(words, 70)).tolist() == [[64, 6]]


def mapping(start: int, end: int, permissions: str, path: str = "") -> Mapping:
    """One mapping as /proc/PID/maps tells it."""
    return Mapping(start, end, permissions, 0, "00:00", 1 if path.startswith("/") else 0, path)


@pytest.mark.parametrize(
    ("mappings", "kinds"),
    [
        (
            [mapping(0, 0x1000, "---p"), mapping(0x1000, 0x800000, "rw-p")],
            [Outside.ANONYMOUS, Outside.STACKS],
        ),
        (
            [mapping(0, 0x1000, "rw-p", "/lib/libx.so"), mapping(0x1000, 0x2000, "rw-p")],
            [Outside.FILES, Outside.FILES],
        ),
        (  # .bss, merged with what was mapped after it
            [mapping(0, 0x1000, "rw-p", "/lib/libx.so"), mapping(0x1000, 0x4000, "rw-p")],
            [Outside.FILES, Outside.ANONYMOUS],
        ),
        ([mapping(0, 0x1000, "rw-p", "[heap]")], [Outside.OTHER_MALLOC]),
        ([mapping(0, 0x1000, "rw-p", "[stack]")], [Outside.STACKS]),
        ([mapping(0, 0x1000, "rw-s", "/dev/shm/x")], [Outside.SHARED]),
        ([mapping(0, 0x1000, "rw-s", "/memfd:x (deleted)")], [Outside.SHARED]),
        ([mapping(0, 0x1000, "r--s", "/usr/share/locale")], [Outside.FILES]),
        (
            [
                mapping(0x7F0004000000, 0x7F0004021000, "rw-p"),
                mapping(0x7F0004021000, 0x7F0008000000, "---p"),
            ],
            [Outside.OTHER_MALLOC, Outside.ANONYMOUS],
        ),
        (  # Java's heap, of 512 MiB
            [mapping(0xE0000000, 0xE1A00000, "rw-p"), mapping(0xE1A00000, 0xFFE00000, "---p")],
            [Outside.ANONYMOUS, Outside.ANONYMOUS],
        ),
        (  # … and of 64 GiB
            [
                mapping(0x7F0040000000, 0x7F0080000000, "rw-p"),
                mapping(0x7F0080000000, 0x7F1040000000, "---p"),
            ],
            [Outside.ANONYMOUS, Outside.ANONYMOUS],
        ),
    ],
)
def test_mappings_are_told_apart(mappings: list[Mapping], kinds: list[Outside]) -> None:
    assert classify(mappings, lambda file: file.end + 0x1000) == kinds
