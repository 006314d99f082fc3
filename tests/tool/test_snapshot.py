"""A snapshot tells what the program holds: to the block when it is quiet, to the batch when it is not."""

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hakmem.base.validity import built
from hakmem.census.figures import Snapshot
from hakmem.census.snapshot import open_process, take
from results import Compile, Find, captured
from tool.conftest import Start, StartOnHakmem, Stepper, Tool

# Sizes of every tier, and how many blocks of each.
SHADOW = {8: 5000, 16: 300, 24: 999, 64: 20000, 100: 1234, 1000: 777, 1024: 100}
SHADOW |= {1025: 50, 4000: 321, 32768: 40, 32769: 30, 200_000: 7, 1_000_000: 3, 3_000_000: 5}
LARGE_MAX_BYTES = 1 << 20
ARGUMENTS = [f"{size}:{count}" for size, count in SHADOW.items()]

THREADS, READ_QUICKLY_MS, TRIES = 1000, 100, 30
# What may be on its way between the moments when caches and slabs are read: a magazine (SLOTS_MAX of
# src/cache/capacity.c) for each thread.
CACHED_BLOCKS_MAX = 2048

STATIC = {
    "static": ["-static"],
    "stripped": ["-static", "-s"],
    "static-pie": ["-static-pie", "-s"],
    "dynamic": ["-rdynamic", "-s"],
}


TRAILER_BYTES = 8  # of src/hardened/trailer.h: added to each block in hardened mode
SLAB_MAX_BYTES = 64 << 10
QUARANTINE_BYTES = 1 << 18  # of each thread, unless HAKMEM_QUARANTINE_BYTES says otherwise
READY_BYTES = 128 << 10  # beside that: of each class, of src/cache/quarantine.c

# hakmem's helper thread would come meanwhile, and with it what the C library allocates for a thread.
QUIET = {"HAKMEM_HELPER_THREAD": "0"}


def snapshot_of(pid: int) -> Snapshot:
    return take(open_process(pid))


def expected(sizes: dict[int, int], snapshot: Snapshot) -> dict[int, int]:
    """Blocks by class for what a program asked for."""
    counts: dict[int, int] = {}
    for size, count in sizes.items():
        if size <= LARGE_MAX_BYTES:
            number = next(c.number for c in snapshot.classes if c.block_bytes >= size)
            counts[number] = counts.get(number, 0) + count
    return counts


def grown(before: Snapshot, after: Snapshot) -> dict[int, int]:
    """Classes whose live blocks changed, and by how much."""
    pairs = zip(before.classes, after.classes, strict=True)
    changes = {new.number: (new.live_blocks or 0) - (old.live_blocks or 0) for old, new in pairs}
    return {number: change for number, change in changes.items() if change}


def check_law(snapshot: Snapshot) -> None:
    """Whatever moment it is of: nothing is negative, nothing is more than there is."""
    for figures in snapshot.classes:
        parts = [figures.free_blocks, figures.remote_blocks, figures.magazine_blocks, figures.live_blocks]
        assert all(part is not None and part >= 0 for part in parts), figures
        assert (figures.live_blocks or 0) <= (figures.capacity_blocks or 0), figures
    assert all(value >= 0 for value in [*snapshot.counters.values(), *snapshot.totals.values()])
    assert all(thread.bytes_out >= 0 and thread.cached_bytes >= 0 for thread in snapshot.threads)
    memory = snapshot.memory
    assert memory.live_bytes <= (memory.mapped_bytes or 0)


def check_shadow(program: Stepper) -> None:
    before = snapshot_of(program.pid)
    program.go_on("allocated")
    after = snapshot_of(program.pid)
    check_law(after)
    assert grown(before, after) == expected(SHADOW, after)
    assert (after.big.blocks or 0) - (before.big.blocks or 0) == SHADOW[3_000_000]
    program.go_on("freed")
    half = snapshot_of(program.pid)
    check_law(half)
    kept = {size: count - (count + 1) // 2 for size, count in SHADOW.items()}
    assert grown(before, half) == expected(kept, half)
    assert (half.big.blocks or 0) - (before.big.blocks or 0) == kept[3_000_000]


@pytest.mark.parametrize("who", ["same thread", "other thread"])
def test_live_blocks_match_a_shadow_count(compiled: Compile, stepper: Start, who: str) -> None:
    remote = ["-r"] if who == "other thread" else []
    check_shadow(stepper([compiled("blocks"), *remote, *ARGUMENTS], "begun", **QUIET))


@pytest.mark.long("a second of processor time")
def test_behind_the_memory_of_others(compiled: Compile, stepper: Start) -> None:
    """Terabytes of it lie between what is hakmem's."""
    program = stepper([compiled("blocks"), "-w", "2", *ARGUMENTS], "begun", **QUIET)
    check_shadow(program)
    begin = time.monotonic()
    snapshot_of(program.pid)
    assert time.monotonic() - begin < 60  # the time between is not read


@pytest.mark.parametrize("who", ["same thread", "other thread"])
def test_hardened_blocks_match_a_shadow_count(compiled: Compile, stepper: Start, who: str) -> None:
    """A freed block waits in its thread's quarantine, and is not live; blocks above 64 KiB are Big ones."""
    is_remote = who == "other thread"
    words = [compiled("blocks"), *(["-r"] if is_remote else []), *ARGUMENTS]
    program = stepper(words, "begun", **QUIET, HAKMEM_HARDEN="1")
    before = snapshot_of(program.pid)
    kept = {size: count - (count + 1) // 2 for size, count in SHADOW.items()}
    for step, counts in (("allocated", SHADOW), ("freed", kept)):
        program.go_on(step)
        after = snapshot_of(program.pid)
        check_law(after)
        room = {size + TRAILER_BYTES: count for size, count in counts.items()}
        in_slabs = {size: count for size, count in room.items() if size <= SLAB_MAX_BYTES}
        assert grown(before, after) == expected(in_slabs, after)
        assert (after.big.blocks or 0) - (before.big.blocks or 0) == sum(counts.values()) - sum(
            in_slabs.values()
        )
    target = open_process(program.pid)
    quick, full = take(target, "counters"), take(target)
    ready = READY_BYTES * sum((c.slabs or 0) > 0 for c in full.classes)
    for snapshot in (quick, full):
        held = sum(item.quarantine_blocks * item.block_bytes for item in snapshot.classes)
        assert snapshot.memory.quarantine_bytes == snapshot.memory.cached_bytes == held
        assert sum(thread.quarantine_bytes for thread in snapshot.threads) == held
        # The thread that freed has ended, and let everything go; in the other blocks are ready.
        assert held <= ready if is_remote else QUARANTINE_BYTES * 0.9 < held <= QUARANTINE_BYTES + ready
    waiting_bytes = sum((c.remote_blocks or 0) * c.block_bytes for c in full.classes)
    assert quick.memory.live_bytes == full.memory.live_bytes + waiting_bytes


@pytest.mark.parametrize("kind", STATIC)
def test_linked_programs_are_read_by_symbol_or_magic(
    compiled: Compile, stepper: Start, static_lib: Path, kind: str
) -> None:
    linked = compiled("blocks", *STATIC[kind], static_lib)
    check_shadow(stepper([linked, *ARGUMENTS], "begun", preload=False, **QUIET))


@pytest.mark.parametrize("kind", ["preloaded", "static", "dynamic"])
def test_a_fitted_class_is_one_from_when_it_is_made(
    compiled: Compile, stepper: Start, static_lib: Path, kind: str
) -> None:
    link = [*STATIC[kind], static_lib] if kind in STATIC else []
    words = [compiled("blocks", *link), "264:9000"]
    program = stepper(words, "begun", preload=not link, **QUIET)
    before = snapshot_of(program.pid)
    assert all(item.block_bytes for item in before.classes)
    program.go_on("allocated")
    after = snapshot_of(program.pid)
    check_law(after)
    (made,) = {item.number for item in after.classes} - {item.number for item in before.classes}
    live = {item.block_bytes: item.live_blocks or 0 for item in after.classes}
    assert sorted(live) == [item.block_bytes for item in after.classes]
    (item,) = (item for item in after.classes if item.number == made)
    assert (item.block_bytes, item.tier, item.mean_request_bytes) == (272, "tiny", 264)
    assert live[272] > 7000 and live[272] + live[320] in range(9000, 9010)


@pytest.mark.parametrize("who", ["same thread", "other thread"])
def test_both_forms_agree(compiled: Compile, stepper: Start, who: str) -> None:
    """But for what other threads freed and the owner has not collected: heaps count that as out."""
    remote = ["-r"] if who == "other thread" else []
    program = stepper([compiled("blocks"), *remote, *ARGUMENTS], "begun", **QUIET)
    program.go_on("allocated")
    program.go_on("freed")
    target = open_process(program.pid)
    quick, full = take(target, "counters"), take(target)
    assert quick.counters == full.counters
    assert quick.memory.cached_bytes == full.memory.cached_bytes
    assert full.memory.cached_bytes > 0 or remote  # the cache of an ended thread went home
    waiting_bytes = sum((c.remote_blocks or 0) * c.block_bytes for c in full.classes)
    assert (waiting_bytes > 0) == (who == "other thread")
    assert quick.memory.live_bytes == full.memory.live_bytes + waiting_bytes


def test_json_brings_the_same_snapshot_back(compiled: Compile, stepper: Start) -> None:
    snapshot = snapshot_of(stepper([compiled("blocks")], "begun").pid)
    assert built(Snapshot, json.loads(json.dumps(asdict(snapshot)))) == snapshot


@pytest.mark.long("2 seconds of processor time each")
@pytest.mark.parametrize("harden", [0, 1])
def test_under_load_figures_stay_within_the_batches(compiled: Compile, stepper: Start, harden: int) -> None:
    """And obey the law."""
    threads, blocks, size = 4, 50_000, 64
    words = [compiled("churn"), threads, blocks, size - harden * TRAILER_BYTES]
    target = open_process(stepper(words, "ready", HAKMEM_HARDEN=str(harden)).pid)
    last: Snapshot | None = None
    for _ in range(20):
        snapshot = take(target)
        check_law(snapshot)
        live = next(c.live_blocks for c in snapshot.classes if c.block_bytes == size)
        # In hardened mode each call changes a slab, so how far off it is depends on how long the reader is
        # kept waiting between two slabs.
        if not harden:
            assert live == pytest.approx(threads * blocks, abs=(threads + 1) * CACHED_BLOCKS_MAX)
        if last is not None:
            assert all(snapshot.counters[name] >= value for name, value in last.counters.items())
        last = snapshot
    assert last is not None
    assert last.counters["refills"] > 0
    assert sum(figures.refilled_blocks for figures in last.classes) > threads * blocks


@pytest.mark.alone
def test_a_thousand_threads_are_read_in_a_tenth_of_a_second(compiled: Compile, stepper: Start) -> None:
    """Of processor time, the best of several tries: others may be using the machine."""
    target = open_process(stepper([compiled("crowd"), THREADS], "ready").pid)
    assert sum(thread.thread_id != 0 for thread in take(target).threads) >= THREADS
    best_ms = float("inf")
    for _ in range(TRIES):
        start = time.process_time()
        snapshot = take(target, "counters")
        best_ms = min(best_ms, (time.process_time() - start) * 1000)
        assert sum(thread.thread_id != 0 for thread in snapshot.threads) >= THREADS
        if best_ms < READ_QUICKLY_MS:
            break
    assert best_ms < READ_QUICKLY_MS


def test_a_stopped_process_is_read_and_stays_stopped(tool: Tool, compiled: Compile, stepper: Start) -> None:
    program = stepper([compiled("blocks"), "100:1000"], "begun")
    program.go_on("allocated")
    os.kill(program.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    snapshot = tool.json("stat", program.pid)
    assert next(c for c in snapshot["classes"] if c["block_bytes"] == 112)["live_blocks"] >= 1000
    assert Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize(("words", "step"), [(["blocks", "8:1"], "begun"), (["crowd", "3"], "ready")])
def test_threads_are_named(compiled: Compile, stepper: Start, words: list[str], step: str) -> None:
    """The first thread, too: it allocates before there are others."""
    program = stepper([compiled(words[0]), *words[1:]], step)
    if step == "begun":
        program.go_on("allocated")
    threads = {thread.thread_id: thread for thread in snapshot_of(program.pid).threads}
    for task in Path(f"/proc/{program.pid}/task").iterdir():
        assert threads[int(task.name)].name == (task / "comm").read_text().strip()
        assert threads[int(task.name)].state in ("running", "dormant")


@pytest.fixture
def redis(program: Find, on_hakmem: StartOnHakmem, tmp_path: Path) -> tuple[int, list[str]]:
    """A server's PID, and the words that lead its clients to it."""
    server = program("redis-server")
    settings = ["--port", "0", "--save", "", "--unixsocket", "s"]
    process = on_hakmem([server, *settings], cwd=tmp_path, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (tmp_path / "s").exists():
        assert time.monotonic() < deadline, "redis-server does not answer"
        time.sleep(0.05)
    return process.pid, ["-s", str(tmp_path / "s")]


@pytest.mark.long("4 seconds; test_why has redis under load")
def test_redis_under_load(redis: tuple[int, list[str]], program: Find, on_hakmem: StartOnHakmem) -> None:
    pid, socket = redis
    work = ["-n", "200000", "-r", "50000", "-d", "100", "-P", "16", "-q", "-t", "set,lpush,lpop,hset"]
    load = on_hakmem([program("redis-benchmark"), *socket, *work], library=None, stdout=subprocess.DEVNULL)
    target = open_process(pid)
    taken = 0
    while load.poll() is None:
        check_law(take(target))
        taken += 1
    assert taken > 3
    info = captured([program("redis-cli"), *socket, "info", "memory"], check=True).stdout
    used = int(info.split("used_memory:")[1].split()[0])
    live = take(target).memory.live_bytes
    assert used <= live <= used + (8 << 20), "what redis counts itself, and a little for its libraries"


def test_python_on_hakmem(tool: Tool, on_hakmem: StartOnHakmem) -> None:
    script = "x = [bytes(5000) for _ in range(10000)]; print(1, flush=True); import time; time.sleep(60)"
    process = on_hakmem(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    snapshot = tool.json("stat", process.pid)
    assert next(c for c in snapshot["classes"] if c["block_bytes"] == 5120)["live_blocks"] >= 10000
    shown = tool("stat", process.pid, COLUMNS="80")
    assert shown.status == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert all(title in shown.stdout for title in ("Memory", "Tiers", "Classes", "Threads", "System calls"))
