"""RSS of programs on hakmem is what `hakmem why` says of them while they run on glibc's malloc."""

import ctypes
import re
from pathlib import Path

import pytest
from anyprocess.conftest import PROGRAMS, Process, Start
from anyprocess.test_why import INTERPRETERS, rss_of
from hakmem.base.sizes import parse_bytes
from hakmem.census.on_hakmem import ACCURACY_SHARE, CLASSES
from results import Compile, Find
from tool.conftest import Tool
from tool.processes import wait_until

SESSIONS = (
    "kept = {i: b'%700d' % i for i in range(100000)}; [kept.pop(i) for i in list(kept) if i % 8]; "
    "print('ready', flush=True); input()"
)
ROWS = (
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) "
    "insert into t select i, hex(randomblob(20)), randomblob(60 + i % 100) from n;"
)
OF_PROGRAMS: dict[str, tuple[list[str], dict[str, str]]] = {
    **INTERPRETERS,
    **{kind: (["shape", kind], {}) for kind in ("plain", "fragmented", "mixed", "tall", "mmapped")},
    "sessions": (["/usr/bin/python3", "-c", SESSIONS], {"PYTHONMALLOC": "malloc"}),
    "gawk": (
        ["gawk", 'BEGIN { for (i = 0; i < 200000; i++) a[i] = sprintf("%0" i % 99 "d", i); '
         'for (i = 0; i < 200000; i += 2) delete a[i]; print "ready"; fflush(); getline }'],
        {},
    ),
    "sqlite": (
        ["sqlite3", "-cmd", f"create table t(a integer primary key, b, c); {ROWS} delete from t where a % 3; "
         "select 'ready';", ":memory:"],
        {},
    ),
    "lua": (
        ["lua5.4", "-e", "local t = {} for i = 1, 100000 do t[i] = {i, tostring(i):rep(i % 7)} end "
         "for i = 1, 100000 do if i % 5 < 3 then t[i] = nil end end collectgarbage() print('ready') "
         "io.stdout:flush() io.read()"],
        {},
    ),
    "node": (
        ["node", "-e", "kept = []; for (let i = 0; i < 100000; i++) kept.push(Buffer.alloc(i % 300 + 1)); "
         "kept = kept.filter((_, i) => i % 3 == 0); console.log('ready'); process.stdin.resume()"],
        {},
    ),
}  # fmt: skip


def bounds_of(verdict: str) -> tuple[int, int]:
    """Those of the sentence."""
    said = verdict[verdict.index("On hakmem RSS would be about") :]
    found = [parse_bytes(size) for size in re.findall(r"[\d.]+ [KMG]iB", said)]
    return found[0], found[-1]


@pytest.mark.long("seconds each", keep=4)
@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_rss_is_as_estimated(
    start: Start, program: Find, compile_c: Compile, tool: Tool, lib: Path, name: str
) -> None:
    """From the start, and after free memory has gone back by age: the helper thread does that in each
    program."""
    (word, *words), variables = OF_PROGRAMS[name]
    command = [compile_c(PROGRAMS / "shape.c") if word == "shape" else program(word), *words]

    def begun(**more: str) -> Process:
        return start(command, **variables, **more)

    least, most = bounds_of(tool.json("why", begun().pid)["verdict"])
    lowest, highest = least * (1 - ACCURACY_SHARE), (1 + ACCURACY_SHARE)
    assert lowest <= rss_of(begun(LD_PRELOAD=str(lib))) <= most * highest
    aged = begun(LD_PRELOAD=str(lib), HAKMEM_HELPER_THREAD="1")
    wait_until(lambda: rss_of(aged) <= least * highest, "its free memory does not go back")
    assert rss_of(aged) >= lowest


def test_the_size_classes_are_the_library_s(lib: Path) -> None:
    library = ctypes.CDLL(str(lib))
    library.hak_good_size.argtypes = [ctypes.c_size_t]
    assert sorted({library.hak_good_size(n) for n in range(1, int(CLASSES[-1]) + 1)}) == CLASSES.tolist()
