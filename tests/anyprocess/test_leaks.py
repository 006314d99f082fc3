"""`hakmem leaks` of a process on glibc's malloc: planted leaks are found by size and content, and a healthy
program has none."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from anyprocess.conftest import Process, Start
from results import Compile, captured
from tool.conftest import Tool
from tool.processes import PROGRAMS, read_until, wait_until

SCAN = ("--for", "0s")
LOST_IN_PYTHON = """
import ctypes
take = ctypes.pythonapi.Py_IncRef
take.argtypes = [ctypes.py_object]
for number in range(400):
    lost = bytes([number % 256]) * 3000
    take(lost)
lost = None
print("ready", flush=True)
input()
"""
# Cycles that nothing else refers to: perl counts references, and collects nothing.  But its own arenas know
# every value, so it is growth that tells.
LOST_IN_PERL = """
$| = 1; print "ready\\n";
while (1) {
    my $node = {text => "lost order " . "x" x 3000}; $node->{self} = $node;
    select(undef, undef, undef, .005);
}
"""
LOST_IN_RUBY = """
require "fiddle"
Thread.new { # its stack, with the last pointers, goes with it
  2000.times { |i| p = Fiddle.malloc(600); Fiddle::Pointer.new(p)[0, 600] = "lost order " * 54 + "xxxxxx" }
}.join
4.times { 20000.times { Object.new }; GC.start } # else some of the freed pointers are still Ruby's
puts "ready"; $stdout.flush; gets
"""


def unreached(tool: Tool, process: Process, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = tool.json("leaks", process.pid, *SCAN, *words)
    return found


# ---- planted leaks ---------------------------------------------------------------------------------


@pytest.fixture
def lost(start: Start, compile_c: Compile) -> Process:
    return start([compile_c(PROGRAMS / "lost.c")])


def known_of(process: Process) -> dict[str, tuple[int, int]]:
    rows = (line.split() for line in process.said)
    return {name: (int(size), int(count)) for name, size, count in rows}


def test_every_lost_block_of_c_is_found(lost: Process, tool: Tool) -> None:
    answer = unreached(tool, lost, "--freeze", "--all")
    known = known_of(lost)
    assert answer["definite"]["blocks"] == sum(count for _, count in known.values())
    assert answer["perhaps"]["blocks"] == 0
    # The first two words of a freed chunk are the thread cache's.
    assert answer["freed_only"]["blocks"] == known["held"][1] - 2
    found = {item["block_bytes"]: item["blocks"] for item in answer["classes"]}
    assert found.pop(None) == known.pop("big")[1]
    for size, count in known.values():
        block_bytes = min(one for one in found if one >= size)
        assert found.pop(block_bytes) == count, (size, found)
    assert not found


def test_in_a_program_that_goes_on(lost: Process, tool: Tool) -> None:
    """Registers that cannot be seen may hold as many groups; all the rest is definite."""
    answer = unreached(tool, lost, "--wait", "100ms")
    definite, perhaps = answer["definite"], answer["perhaps"]
    assert definite["blocks"] + perhaps["blocks"] == sum(count for _, count in known_of(lost).values())
    assert 0 < perhaps["groups"] <= answer["unseen_registers"]
    assert definite["groups"] > 500
    assert len(answer["scans"]) >= 2


def test_lost_objects_of_cxx(start: Start, compile_c: Compile, tool: Tool) -> None:
    answer = unreached(tool, start([compile_c(PROGRAMS / "lost_objects.cc")]), "--freeze")
    names = {
        row["name"]: row["blocks_share"]["share"] * answer["definite"]["blocks"] for row in answer["contents"]
    }
    # The last one's address may still lie in a dead part of the stack.
    assert 999 <= round(names["shop::Order"]) <= 1000
    assert 499 <= round(names["shop::Basket<int>"]) <= 500
    assert "shop::Kept" not in names


@pytest.mark.parametrize("variables", [{}, {"PYTHONMALLOC": "malloc"}], ids=["pymalloc", "malloc"])
@pytest.mark.parametrize("words", [["--freeze"], ["--wait", "100ms"]], ids=" ".join)
def test_lost_python_objects(start: Start, tool: Tool, words: list[str], variables: dict[str, str]) -> None:
    """As a faulty extension does: one reference too many."""
    answer = unreached(tool, start(["/usr/bin/python3", "-c", LOST_IN_PYTHON], **variables), *words)
    (row,) = (row for row in answer["contents"] if row["name"] == "bytes")
    assert row["kind"] == "Python object"
    found = row["blocks_share"]["share"] * answer["definite"]["blocks"]
    # Debian's CPython has its heap at low addresses: some numbers look like pointers there.
    assert 360 - answer["perhaps"]["blocks"] <= found <= 400
    assert row["bytes_share"]["share"] > 0.9


def test_lost_blocks_of_ruby(start: Start, tool: Tool) -> None:
    if shutil.which("ruby") is None:
        pytest.skip("ruby is missing")
    answer = unreached(tool, start(["ruby", "-e", LOST_IN_RUBY]), "--freeze")
    assert 1995 <= answer["definite"]["blocks"] <= 2005
    texts = [row for row in answer["contents"] if row["kind"] == "text"]
    assert texts[0]["blocks_share"]["share"] * answer["definite"]["blocks"] >= 1995


# ---- growth ----------------------------------------------------------------------------------------


@pytest.mark.long("3 seconds each, to watch a program grow", keep=1)
@pytest.mark.parametrize("a_second", [200, 1000])
def test_growth_by_size(start: Start, compile_c: Compile, tool: Tool, a_second: int) -> None:
    """The bounds contain the truth, and the size and the content are right."""
    source = Path(__file__).parent / "programs" / "grows.c"
    process = start([compile_c(source), str(a_second)])
    answer = tool.json("leaks", process.pid, "--for", "2s", "--wait", "100ms")
    grown = answer["size_growth"]
    (one,) = (size for size in grown["sizes"] if 600 <= size["block_bytes"] <= 616)
    wanted = a_second * grown["seconds"]
    # On a busy machine the program may stand still before a scan, and catch up before the next.
    late = a_second * float(process.communicate()[0]) / 1000
    assert one["low"] * 0.98 - late <= wanted <= one["high"] * 1.02 + 1 + late, answer
    assert one["high"] - one["low"] < wanted
    assert one["content"] == "text"
    assert grown["sizes"][0] == one
    assert answer["definite"]["blocks"] == 0
    assert "600" in answer["verdict"] or "616" in answer["verdict"]


@pytest.mark.long("2 seconds, to watch a program grow")
def test_growth_of_perl(start: Start, tool: Tool) -> None:
    answer = tool.json("leaks", start(["perl", "-e", LOST_IN_PERL]).pid, "--for", "2s", "--wait", "100ms")
    grown = answer["size_growth"]["sizes"][0]
    assert 3011 <= grown["block_bytes"] <= 3060
    assert grown["content"] == "text"
    assert 0 < grown["low"] <= answer["size_growth"]["seconds"] * 200


# ---- statuses --------------------------------------------------------------------------------------


def test_check_has_a_status(lost: Process, start: Start, tool: Tool) -> None:
    assert tool("leaks", lost.pid, *SCAN, "--freeze", "--check").status == 1
    healthy = start(["sh", "-c", "echo ready; read line"])
    assert tool("leaks", healthy.pid, *SCAN, "--freeze", "--check").status == 0


def test_as_text(lost: Process, tool: Tool) -> None:
    text = " ".join(tool("leaks", lost.pid, *SCAN, "--freeze").stdout.split())
    for words in ("definitely lost", "hakmem run -- ", "glibc 2."):
        assert words in text, text


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
input()
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
CODE_AWK = 'BEGIN { for (i = 0; i < 50000; i++) a["key" i] = i; print "ready"; fflush(); getline x }'
CODE_NODE = """
const kept = new Map();
for (let i = 0; i < 50000; i++) kept.set("k" + i, {i, b: Buffer.alloc(100 + i % 1000)});
console.log("ready");
setInterval(() => kept.set("k1", {b: Buffer.alloc(200)}), 1);
"""
CODE_TCL = 'for {set i 0} {$i < 50000} {incr i} {set a($i) "x$i"}; puts ready; flush stdout\n'
SQL = """
create table rows (id integer primary key, name text, size real);
with recursive n (i) as (select 1 union all select i + 1 from n where i < 50000)
insert into rows select i, 'name' || i, i * 1.5 from n;
.print ready
"""
JQ = 'reduce range(50000) as $i ({}; .["k\\($i)"] = {i: $i, l: [range(3)]}) | "ready", (. as $all | input)'
NUMBERS = "".join(f"{number * 7919 % 300007}\n" for number in range(300000))
FUNCTIONS = "".join(f"int f{number}(int x) {{ return x + {number}; }}\n" for number in range(3000))
BLOBS = "".join(f"blob\nmark :{number}\ndata 6\nhello\n\n" for number in range(1, 5000)) + "progress ready\n"
# Commands, and what they read; they wait for more.
HEALTHY = {
    "python3": (["/usr/bin/python3", "-c", CODE_PYTHON], ""),
    "perl": (["perl", "-e", CODE_PERL], ""),
    "bash": (["bash", "-c", "for i in {1..20000}; do a[i]=value$i; done; echo ready; read x"], ""),
    "awk": (["awk", CODE_AWK], ""),
    "node": (["node", "-e", CODE_NODE], ""),
    "jq": (["jq", "-n", "-r", "--unbuffered", JQ], ""),
    "tclsh": (["tclsh"], CODE_TCL),
    "sqlite3": (["sqlite3", ":memory:"], SQL),
    "git": (["git", "fast-import", "--quiet"], BLOBS),
    "sort": (["sort", "--parallel=2"], NUMBERS),
    "openssl": (["openssl", "enc", "-base64", "-out", "/dev/null"], NUMBERS),
    "xmllint": (["xmllint", "--stream", "-"], "<a>" + "<b>text</b>" * 20000),
    "cc1": (["cc1", "-quiet", "-o", "/dev/null", "-"], FUNCTIONS),
    "sed": (["sed", "-n", "s/9/8/;$p"], NUMBERS),
    "grep": (["grep", "-c", "9"], NUMBERS),
    "tac": (["tac"], NUMBERS),
    "wc": (["wc"], NUMBERS),
    "make": (["make", "-f", "-"], "".join(f"f{number}: g{number}\n" for number in range(5000))),
    "gdb": (["gdb", "-q", "-nx", "/bin/bash"], "info functions malloc\n"),
}
SAYS_READY = ("python3", "perl", "bash", "awk", "node", "jq", "tclsh", "sqlite3", "git")


def begun(start: Start, name: str, folder: Path, cc: str) -> Process:
    command, text = HEALTHY[name]
    program = shutil.which(command[0])
    if name == "cc1":
        program = shutil.which(captured([cc, "-print-prog-name=cc1"]).stdout.strip())
    if program is None:
        pytest.skip(f"{name} is missing")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    process = start([program, *command[1:]], ready=None, cwd=folder)
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()
    if name in SAYS_READY:
        read_until(process, "progress ready" if name == "git" else "ready")
    else:
        wait_until(lambda: Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "S", f"{name} works")
    return process


@pytest.mark.long("a second each; scans real programs, for verdicts that are wrong by chance", keep=2)
@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_lost_in_a_healthy_program(
    start: Start, tool: Tool, name: str, tmp_path: Path, cc: str
) -> None:
    """Nor is its heap broken, whatever it does."""
    process = begun(start, name, tmp_path, cc)
    answer = unreached(tool, process, "--freeze")
    assert answer["live"]["blocks"] > 50
    assert answer["definite"] == {"blocks": 0, "bytes": 0, "groups": 0}, answer["contents"]
    assert tool.json("why", process.pid)["broken"] == []
