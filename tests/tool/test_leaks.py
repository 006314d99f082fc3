"""hakmem leaks: lost blocks are found; a block that is still reachable is never definitely lost."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hakmem.blocks.conclusion import Conclusion
from hakmem.blocks.freeze import frozen
from hakmem.blocks.leaks import Options, Suspects, find_leaks, found_leaks, judged
from hakmem.blocks.marking import Edges, groups, spread
from hakmem.blocks.scanning import Scan, Scanning
from hakmem.blocks.whose import Whose
from hakmem.target.pages import SWAPPED
from hakmem.target.process import Process
from hakmem.target.target import open_process
from results import Compile
from tool.conftest import Start, Tool
from tool.dumps import dumped, needs_gcore
from tool.processes import PROGRAMS, hakmem, hakmem_json, redis_load, running, running_redis, runs, wait_until

SEED = 5
MIB = 1 << 20
SLOW_S = 200  # six scans of a program that keeps a loaded machine busy
SERVER_LOST = 10000
SCAN = (
    "--for",
    "0s",
)  # growing sites are in test_leaks_sites.py


def unreached(*words: object) -> Any:  # noqa: ANN401 - what `hakmem leaks --json` says
    return hakmem_json("leaks", *SCAN, *words)


# ---- planted leaks ---------------------------------------------------------------------------------


def known_of(process: subprocess.Popen[str]) -> dict[str, tuple[int, int]]:
    """name → block size, count."""
    rows = (line.split() for line in process.said)  # type: ignore[attr-defined]
    return {name: (int(size), int(count)) for name, size, count in rows}


lost = runs("lost.c")


def check_lost(answer: dict[str, Any], known: dict[str, tuple[int, int]]) -> None:
    """Every block that was lost, by size, and nothing else."""
    found = {item["block_bytes"]: item["blocks"] for item in answer["classes"]}
    wanted = sorted(known.values())
    assert found.pop(None) == known["big"][1]
    for size, count in wanted[1:]:
        block_bytes = min(one for one in found if one >= size)
        assert found.pop(block_bytes) == count, (size, found)
    assert not found
    assert answer["definite"]["blocks"] == sum(count for _, count in wanted)
    assert answer["perhaps"]["blocks"] == 0
    assert answer["freed_only"]["blocks"] == known["held"][1]
    assert answer["interior"]["blocks"] >= 1  # the one that is only known by its middle


def test_a_frozen_process(lost: subprocess.Popen[str]) -> None:
    answer = unreached(lost.pid, "--freeze", "--all")
    check_lost(answer, known_of(lost))
    assert answer["is_frozen"]
    assert answer["unseen_registers"] == 0
    # A ring of two is one group, and so is a list.
    singles = sum(count for name, (_, count) in known_of(lost).items() if name not in ("list", "ring"))
    assert answer["definite"]["groups"] == singles + 10 + known_of(lost)["ring"][1] // 2


def test_a_running_process(lost: subprocess.Popen[str]) -> None:
    """Registers that cannot be seen may hold as many groups; all the rest is definite."""
    answer = unreached(lost.pid, "--wait", "100ms")
    definite, perhaps = answer["definite"], answer["perhaps"]
    total = sum(count for _, count in known_of(lost).values())
    assert definite["blocks"] + perhaps["blocks"] == total
    assert 0 < perhaps["groups"] <= answer["unseen_registers"]
    assert definite["groups"] > 500
    assert len(answer["scans"]) >= 2


@pytest.mark.parametrize("variables", [{"HAKMEM_HARDEN": "2"}, {"HAKMEM_GUARD": "1"}], ids=str)
def test_closed_pages_are_not_swapped(lib: Path, compile_c: Compile, variables: dict[str, str]) -> None:
    """The kernel's page map says so of pages that were closed by MADV_GUARD_INSTALL."""
    with running([compile_c(PROGRAMS / "lost.c")], lib, variables) as process:
        answer = unreached(process.pid, "--freeze")
        known = known_of(process)
    assert not any("swapped" in note for note in answer["notes"])
    assert answer["definite"]["blocks"] == sum(count for _, count in known.values())


def test_a_kernel_that_tells_nothing_of_threads(
    lost: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all registers are unseen, and all of every stack is in use."""
    monkeypatch.setattr(Process, "system_calls", lambda process: {one: [] for one in process.thread_ids()})
    found = find_leaks(open_process(lost.pid), Options(wait_s=0.05))
    assert found.threads == 2
    assert found.unseen_registers >= 30
    assert found.definite.groups > 200


def test_as_text(lost: subprocess.Popen[str]) -> None:
    text = hakmem("leaks", *SCAN, lost.pid, "--wait", "100ms").stdout
    for words in ("definitely lost", "perhaps lost", "--freeze", "pointers", "scans, each of"):
        assert words in text, words


@needs_gcore
def test_a_core(lost: subprocess.Popen[str], tmp_path: Path) -> None:
    answer = unreached(dumped(lost.pid, tmp_path))
    known = known_of(lost)
    # The pointers that epoll keeps are not in a dump.
    assert answer["definite"]["blocks"] == sum(count for _, count in known.values()) + 1
    assert answer["is_core"]
    assert answer["unseen_registers"] == 0


def test_classes_of_lost_objects(lib: Path, compile_c: Compile) -> None:
    with running([compile_c(PROGRAMS / "lost_objects.cc")], lib) as process:
        answer = unreached(process.pid, "--freeze")
    names = {
        row["name"]: row["blocks_share"]["share"] * answer["definite"]["blocks"] for row in answer["contents"]
    }
    # The last one's address may still lie in a dead part of the stack: compilers differ.
    assert 999 <= round(names["shop::Order"]) <= 1000
    assert 499 <= round(names["shop::Basket<int>"]) <= 500
    assert "shop::Kept" not in names


def test_lost_python_objects(lib: Path) -> None:
    """As a faulty extension does: one reference too many."""
    code = """
import ctypes, time
take = ctypes.pythonapi.Py_IncRef
take.argtypes = [ctypes.py_object]
for number in range(400):
    lost = bytes([number % 256]) * 3000
    take(lost)
lost = None
print("ready", flush=True)
time.sleep(300)
"""
    with running(["/usr/bin/python3", "-c", code], lib) as process:
        answer = unreached(process.pid, "--freeze")
    (row,) = (row for row in answer["contents"] if row["name"] == "bytes")
    assert row["kind"] == "Python object"
    assert 395 <= row["blocks_share"]["share"] * answer["definite"]["blocks"] <= 400


# ---- healthy programs ------------------------------------------------------------------------------

CODE_PYTHON = """
import collections, json, threading, time
data = json.loads(json.dumps({str(i): {"a": [str(i)] * 5, "b": i * 1.5} for i in range(20000)}))
queue = collections.deque(range(50000))
def work():
    while True:
        data[str(time.monotonic_ns() % 20000)] = [b"z" * 600 for _ in range(100)]
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(300)
"""
CODE_PERL = """
my %h; for my $i (1..50000) { $h{"key$i"} = {v => $i, l => [1..3], s => "x" x ($i % 200)}; }
$| = 1; print "ready\\n";
while (1) {
    delete $h{"key" . int(rand(50000))};
    $h{"key" . int(rand(50000))} = {n => 1};
    select(undef, undef, undef, .0005);
}
"""
CODE_NODE = """
const kept = new Map();
for (let i = 0; i < 50000; i++) kept.set("k" + i, {i, b: Buffer.alloc(100 + i % 1000)});
console.log("ready");
setInterval(() => {
    for (let i = 0; i < 300; i++) kept.set("k" + (Math.random() * 50000 | 0), {b: Buffer.alloc(200)});
}, 20);
"""
CODE_BASH = "for i in {1..20000}; do a[i]=value$i; done; echo ready; while :; do read -t 1 x <> <(:); done"
CODE_AWK = (
    'BEGIN { for (i = 0; i < 50000; i++) a["key" i] = i; print "ready"; fflush(); '
    'while (("sleep 1" | getline x) >= 0) close("sleep 1") }'
)
CODE_LUA = """
local kept = {}
for i = 1, 50000 do kept[i] = {name = "key" .. i, list = {i, i + 1}, text = string.rep("x", i % 200)} end
print("ready") io.flush()
while true do kept[math.random(50000)] = {name = tostring(math.random()), text = string.rep("y", 300)} end
"""
SQL = """
create table rows (id integer primary key, name text, size real);
create index by_name on rows (name);
with recursive n (i) as (select 1 union all select i + 1 from n where i < 50000)
insert into rows select i, 'name' || i, i * 1.5 from n;
"""
SQL_ENDLESS = """
with recursive n (i) as (select 1 union all select i + 1 from n)
select count(*) from n join rows on rows.id = n.i % 50000 where name like '%7%' order by name;
"""
JQ = """
reduce range(50000) as $i ({}; .["k\\($i)"] = {i: $i, l: [range(3)]}) | "ready", (. as $all |
range(1000000000) | select(($all["k\\(. % 50000)"] | tojson | length) < 0))
"""
# Both have read what there is, and wait for more.  That address 0 has no data all symbolizers say alike; of a
# line that they do not understand newer ones speak on standard error.
CODE_SYMBOLIZER = """
exec llvm-symbolizer < <(
    for i in {1..2000}; do echo "CODE /bin/bash $((i * 64 + 200000))"; done; echo DATA /bin/bash 0; sleep 300)
"""
CODE_GIT = """
git init -q . && exec git fast-import --quiet < <(
    for i in {1..5000}; do printf 'blob\\nmark :%d\\ndata 6\\nhello\\n\\n' $i; done
    echo progress ready; sleep 300)
"""
HEALTHY = {
    "python3": ["/usr/bin/python3", "-c", CODE_PYTHON],
    "perl": ["perl", "-e", CODE_PERL],
    "node": ["node", "-e", CODE_NODE],
    "bash": ["bash", "-c", CODE_BASH],
    "awk": ["awk", CODE_AWK],
    "lua5.4": ["lua5.4", "-e", CODE_LUA],
    "sqlite3": ["sqlite3", ":memory:", SQL, ".shell echo ready", SQL_ENDLESS],
    "jq": ["jq", "-n", "-r", "--unbuffered", JQ],
    "llvm-symbolizer": ["bash", "-c", CODE_SYMBOLIZER],
    "git": ["bash", "-c", CODE_GIT],
}
FEW = ("python3", "node", "jq")  # the others when there is time
READY_LINES = {"git": "progress ready", "llvm-symbolizer": "0 0"}


@pytest.mark.long("2 seconds each; scans real programs, for verdicts that are wrong by chance")
@pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.long("one more")) for name in HEALTHY],
)
def test_nothing_is_definitely_lost_in_a_healthy_program(
    lib: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in redis, nor where threads free each other's blocks, below; and some blocks are samples."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is missing")
    monkeypatch.chdir(tmp_path)
    with running(HEALTHY[name], lib, ready=READY_LINES.get(name, "ready")) as process:
        words = ("leaks", process.pid, "--for", "2s", "--wait", "300ms", "--json")
        answer = json.loads(hakmem(*words, limit_s=SLOW_S).stdout)
    assert answer["live"]["blocks"] > 100
    assert answer["definite"] == {"blocks": 0, "bytes": 0, "groups": 0}, answer["contents"]


@pytest.mark.long("3 seconds; scans a real server, for verdicts that are wrong by chance")
def test_nothing_is_definitely_lost_in_redis(lib: Path) -> None:
    server = shutil.which("redis-server")
    if server is None or shutil.which("redis-benchmark") is None:
        pytest.skip("redis-server or redis-benchmark is missing")
    with running_redis(Path(server), lib) as (process, port):
        load = redis_load(port, "-t", "set,lpush,hset", "-r", "100000", "-n", "100000000")
        try:
            wait_until(lambda: hakmem_json("stat", process.pid)["memory"]["live_bytes"] > MIB, "no load came")
            answer = unreached(process.pid, "--wait", "300ms")
        finally:
            load.kill()
            load.wait()
    assert answer["definite"]["blocks"] == 0, answer["contents"]


def test_nothing_is_definitely_lost_where_threads_free_each_others(busy: subprocess.Popen[str]) -> None:
    answer = unreached(busy.pid, "--wait", "50ms")
    assert answer["definite"]["blocks"] == 0, answer


# ---- what changes while it is scanned ------------------------------------------------------------------


server = runs("server.c", str(SERVER_LOST), str(3 * SERVER_LOST), HAKMEM_PROFILE="65536")


@pytest.mark.long("2 seconds of processor time")
def test_what_is_lost_in_a_server_is_told_with_its_site(server: subprocess.Popen[str]) -> None:
    """Whether its scans agree or not, each block that is lost counts, and hardly any other."""
    answer = unreached(server.pid, "--wait", "50ms")
    blocks = answer["definite"]["blocks"] + answer["perhaps"]["blocks"]
    assert SERVER_LOST <= blocks < 1.1 * SERVER_LOST
    verdict = answer["verdict"]
    assert "Nothing" not in verdict
    assert re.search(r"(definitely|[Pp]erhaps) lost.*sampled blocks of lose \(server\.c:\d+\)", verdict)
    assert answer["definite"]["blocks"] or "--freeze tells" in verdict


@pytest.mark.long("2 seconds of processor time")
def test_one_block_that_is_reached_again_hides_no_other(server: subprocess.Popen[str]) -> None:
    """The last scan takes one away: then all others are perhaps lost, and the verdict says so."""
    target = open_process(server.pid)

    def scan(missing: int) -> Scan:
        found = Scanning(target).run()
        keeps = np.flatnonzero(found.hashes != 0)[missing:]
        return replace(found, unreachable=found.unreachable[keeps], hashes=found.hashes[keeps])

    with frozen(Process(server.pid)):
        found = found_leaks(target, Options(), judged([lambda: scan(0), lambda: scan(1)]))
        settled = found_leaks(target, Options(), judged([lambda: scan(1), lambda: scan(1)]))
    assert not found.is_whole
    assert found.definite.blocks == 0
    assert SERVER_LOST - 1 <= found.perhaps.blocks < 1.1 * SERVER_LOST
    concluded = Conclusion(**Whose.head_of(target), evidence=None, reached=found)
    assert re.fullmatch(r".* MiB in .* blocks are perhaps lost; --freeze tells\.", concluded.verdict)
    assert settled.definite.blocks > SERVER_LOST / 2


# ---- what must not happen to the process -----------------------------------------------------------


def rss_of(pid: int) -> int:
    return Process(pid).smaps_rollup()["Rss"]


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize(
    "command", [["leaks", *SCAN, "--wait", "50ms"], ["leaks", *SCAN, "--freeze"], ["what"]]
)
def test_nothing_is_made_resident(lib: Path, compile_c: Compile, command: list[str]) -> None:
    """64 MiB of the program's live blocks were never touched."""
    with running([compile_c(PROGRAMS / "known.c")], lib) as process:
        before = rss_of(process.pid)
        hakmem_json(*command, process.pid)
        assert rss_of(process.pid) - before < MIB


def test_terabytes_that_are_only_reserved(lib: Path, compile_c: Compile) -> None:
    """Their pages are not asked for one by one: that would take minutes."""
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if release < (6, 7):
        pytest.skip("this kernel has no PAGEMAP_SCAN")
    if Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2":
        pytest.skip("strict overcommit: that much cannot be reserved")
    with running([compile_c(PROGRAMS / "sparse.c")], lib) as process:
        answer = unreached(process.pid, "--freeze")
    assert 38 <= answer["definite"]["blocks"] <= 40
    assert {item["block_bytes"] for item in answer["classes"]} == {320}


def state_of(pid: int) -> tuple[str, str]:
    status = Process(pid).status()
    return status["State"][0], status["TracerPid"]


def test_a_frozen_process_goes_on(lost: subprocess.Popen[str]) -> None:
    with frozen(Process(lost.pid)) as threads:
        assert state_of(lost.pid)[0] == "t"
        assert len(threads) == 2
        assert all(thread.stack_pointer and not thread.unseen_registers for thread in threads)
    wait_until(lambda: state_of(lost.pid) == ("S", "0"), "it is still stopped")


FREEZE = """
import sys, time
from hakmem.blocks.freeze import frozen
from hakmem.target.process import Process
with frozen(Process(int(sys.argv[1]))):
    print("frozen", flush=True)
    time.sleep(300)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
def test_it_goes_on_however_the_tool_ends(
    lost: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    words = [sys.executable, "-c", FREEZE, str(lost.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as tool:
        assert tool.stdout is not None
        assert tool.stdout.readline() == b"frozen\n"
        assert state_of(lost.pid)[0] == "t"
        tool.send_signal(number)
        tool.wait()
    wait_until(lambda: state_of(lost.pid) == ("S", "0"), "it is still stopped")


def test_a_process_that_is_debugged_already(lost: subprocess.Popen[str]) -> None:
    words = [sys.executable, "-c", FREEZE, str(lost.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"frozen\n"
            step = hakmem("leaks", *SCAN, lost.pid, "--freeze", status=1)
            assert f"is being debugged by process {other.pid}" in step.stderr
            assert len(step.stderr.splitlines()) == 1
            # Reading does not need it.
            assert unreached(lost.pid, "--wait", "50ms")["definite"]["blocks"] > 0
        finally:
            other.kill()


def test_a_stopped_process_stays_stopped(lib: Path, compile_c: Compile) -> None:
    with running([compile_c(PROGRAMS / "lost.c")], lib) as process:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(process.pid)[0] == "T", "it does not stop")
        check_lost(unreached(process.pid, "--freeze", "--all"), known_of(process))
        assert state_of(process.pid) == ("T", "0")


def test_swapped_memory_makes_nothing_definite(
    lost: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pointers in them cannot be seen."""
    from hakmem.blocks import regions

    read = regions.read_entries

    def swapped(file: int, address: int, count: int) -> np.ndarray:
        entries = read(file, address, count)
        entries[0] = SWAPPED
        return entries

    monkeypatch.setattr(regions, "read_entries", swapped)
    monkeypatch.setattr(regions, "has_swapped", lambda _target: True)
    found = find_leaks(open_process(lost.pid), Options(wait_s=0.05))
    assert not found.is_whole
    assert found.definite.blocks == 0
    assert found.perhaps.blocks > 0
    assert "swapped out" in found.notes[0]
    assert "--swapped" in found.notes[0]


# ---- arithmetic ------------------------------------------------------------------------------------


def any_graph(chance: random.Random) -> tuple[int, Edges]:
    count = chance.randint(1, 300)
    pairs = [(chance.randrange(count), chance.randrange(count)) for _ in range(chance.randint(0, 2 * count))]
    if chance.random() < 0.3:  # a list through all of it
        order = chance.sample(range(count), count)
        pairs += list(pairwise(order))
    pairs.sort()
    table = np.array(pairs or np.empty((0, 2)), np.int64).reshape(-1, 2)
    return count, Edges(table[:, 0].copy(), table[:, 1].copy())


def reached(begun: set[int], edges: Edges) -> set[int]:
    """The same, slowly."""
    pairs = list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    while True:
        fresh = {target for source, target in pairs if source in begun} - begun
        if not fresh:
            return begun
        begun = begun | fresh


def test_marks_spread_to_all_that_can_be_reached() -> None:
    chance = random.Random(SEED)
    for _ in range(300):
        count, edges = any_graph(chance)
        begun = {node for node in range(count) if chance.random() < 0.05}
        is_marked = np.zeros(count, bool)
        is_marked[list(begun)] = True
        spread(edges, is_marked)
        assert set(np.flatnonzero(is_marked).tolist()) == reached(begun, edges)


def test_a_long_list_and_a_wide_tree() -> None:
    """Both ways of following edges, and the changes between them."""
    count = 50000
    tail = np.arange(count - 1)
    wide = np.arange(count, 2 * count)
    sources = np.concatenate([tail, np.full(count, count // 2), wide])
    targets = np.concatenate([tail + 1, wide, wide + count])
    order = np.argsort(sources, kind="stable")
    is_marked = np.zeros(3 * count, bool)
    is_marked[0] = True
    spread(Edges(sources[order], targets[order]), is_marked)
    assert is_marked.all()


@pytest.mark.long("4 seconds of random graphs")
def test_every_lost_block_is_in_the_group_of_a_head_that_reaches_it() -> None:
    chance = random.Random(SEED)
    for _ in range(300):
        count, edges = any_graph(chance)
        members = np.array(sorted(chance.sample(range(count), chance.randint(0, count))), np.int64)
        head_of = groups(edges, members)
        inside = set(members.tolist())
        pairs = zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)
        kept = [(s, t) for s, t in pairs if s in inside and t in inside and s != t]
        table = np.array(kept or np.empty((0, 2)), np.int64).reshape(-1, 2)
        for place, head in enumerate(head_of.tolist()):
            assert int(members[place]) in reached({int(members[head])}, Edges(table[:, 0], table[:, 1]))
        pointed_at = {target for _, target in kept}
        heads = {int(members[head]) for head in head_of.tolist()}
        assert inside - pointed_at <= heads


def test_suspects_are_the_same_block_with_the_same_contents() -> None:
    def suspects(*rows: tuple[int, int, int]) -> Suspects:
        starts, sizes, hashes = zip(*rows, strict=True) if rows else ((), (), ())
        return Suspects(np.array(starts, np.uint64), np.array(sizes, np.int64), np.array(hashes, np.uint64))

    now = suspects((16, 16, 1), (32, 16, 2), (64, 64, 3), (128, 64, 4))
    before = suspects((16, 16, 1), (32, 16, 9), (64, 32, 3), (128, 64, 4), (256, 64, 5))
    assert now.rows_in(before).tolist() == [0, 3]
    assert now.rows_in(suspects()).tolist() == []


def scan_of(*blocks: int) -> Scan:
    """One that suspects these blocks: their numbers are also their addresses and contents."""
    found = np.array(blocks, np.int64)
    return cast(
        "Scan",
        SimpleNamespace(
            hashes=found.astype(np.uint64),
            unreachable=found,
            map=SimpleNamespace(starts_of=np.uint64, sizes_of=lambda rows: np.full(len(rows), 16)),
            threads=[],
            swapped_bytes=0,
            missing_bytes=0,
            seconds=0.5,
            processor_seconds=0.25,
            read_bytes=100,
        ),
    )


@pytest.mark.long("a second each")
@pytest.mark.parametrize(
    ("scans", "count", "lost", "is_settled"),
    [
        ([[]], 1, [], True),
        ([[1, 2], [1, 2]], 2, [1, 2], True),
        ([[1, 2], [1, 2, 3]], 2, [1, 2], True),  # a leak that goes on
        ([[1, 2, 3], [1, 4], [1, 2, 3]], 3, [1], True),
        ([[1, 2], [3, 4]], 2, [], True),
        ([[1, 2, 3, 4], [1, 2, 3], [1, 2], [1]], 4, [1], False),
    ],
)
def test_scans_go_on_until_one_takes_nothing_away(
    scans: list[list[int]], count: int, lost: list[int], is_settled: bool
) -> None:
    steps = [lambda blocks=blocks: scan_of(*blocks) for blocks in scans]
    verdict = judged([*steps, *[steps[-1]] * (len(scans) == 1)])
    assert len(verdict.log) == count
    assert verdict.lost.tolist() == lost
    assert verdict.is_settled == is_settled


@pytest.mark.long("8 seconds in which threads come and go")
def test_the_tool_waits_for_no_thread_that_ends(compiled: Compile, stepper: Start, tool: Tool) -> None:
    """Threads come and go while they are stopped one by one."""
    program = stepper([compiled("crowd"), 50], "ready")
    ended = tool("leaks", *SCAN, program.pid, "--freeze")
    assert ended.status == 0, ended.stderr
    assert program.process.poll() is None
