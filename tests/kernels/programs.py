"""The programs for other kernels: those of the other tests, as those run them, on the library that `make`
built.

`jobs(...)` builds them.  TELLING are those where kernels differ most; `make test-kernels` runs all.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernels.machine import Job
from modes import INCLUDE_TESTS
from preload import preload_environment
from results import Compile, captured

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent

DECAY = {"HAKMEM_DECAY_MS": "200"}
NEVER = {"HAKMEM_DECAY_MS": "3600000"}
HELPER = DECAY | {"HAKMEM_HELPER_THREAD": "1"}
HARDENED = {"HAKMEM_HARDEN": "2"}
GUARDED = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}


@dataclass(frozen=True)
class Program:
    source: str  # below tests/
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    is_telling: bool = False
    reports: bool = True
    huge_pages: str = "madvise"

    @property
    def name(self) -> str:
        words = [self.source.partition(".")[0], *self.arguments]
        words += [f"{name}={value}" for name, value in self.environment.items()]
        return "-".join(words if self.huge_pages == "madvise" else [*words, f"huge-pages-{self.huge_pages}"])


# Those of tests/api that need a library to be linked with, or print, stay where they are.
API_ELSEWHERE = {"free_sized", "churn"}
API_OPTIONS = {"malloc_trim": NEVER}


def api_programs() -> Iterator[Program]:
    for path in sorted((TESTS / "api").glob("*.c")):
        if path.stem in API_ELSEWHERE or '"hakmem/hakmem.h"' in path.read_text():
            continue
        options = API_OPTIONS.get(path.stem, {})
        yield Program(f"api/{path.name}", environment=options, is_telling=path.stem.startswith("realloc"))
        if not path.stem.startswith("alignment_"):  # which take a minute there
            yield Program(f"api/{path.name}", environment=options | HARDENED)


def huge_page_programs() -> Iterator[Program]:
    """The memory's cost in each mode, and the ways to give it back."""
    for mode in ("always", "madvise", "never"):
        for what in ("small", "sparse", "dense"):
            is_telling = mode != "never" or what == "sparse"
            yield Program("kernels/huge_pages.c", (what, mode), DECAY, is_telling, huge_pages=mode)
    for how, options in (("helper", HELPER), ("trim", NEVER)):
        yield Program("memory/memory_comes_back.c", (how, "threads"), options, huge_pages="always")
    for name in ("api/malloc_trim", "memory/realloc_doubling", "concurrency/key_destructors"):
        yield Program(f"{name}.c", huge_pages="always")
    off = DECAY | {"HAKMEM_THP": "0"}
    yield Program("kernels/huge_pages.c", ("dense", "never"), off, huge_pages="always")
    yield Program(
        "concurrency/fuzz.c", ("4", "2", "4", "1000"), {"HAKMEM_DECAY_MS": "0"}, huge_pages="always"
    )


PROGRAMS = (
    *huge_page_programs(),
    *api_programs(),
    Program("memory/realloc_doubling.c", is_telling=True),
    Program("memory/realloc_doubling.c", environment=HARDENED),
    Program("memory/memory_comes_back.c", ("helper", "main"), HELPER, is_telling=True),
    Program("memory/memory_comes_back.c", ("trim", "sleepers"), NEVER, is_telling=True),
    *(
        Program("memory/freed_by_others.c", ("ended", size, size), NEVER)
        for size in ("64", "100000", "2000000")
    ),
    Program("memory/phases.c", ("64", "64", "scattered"), DECAY),
    Program("memory/phases.c", ("100000", "100000", "scattered"), DECAY),
    Program("concurrency/fork_under_load.c", ("40", "fork"), is_telling=True, reports=False),
    Program("concurrency/fork_generations.c", is_telling=True),
    Program("concurrency/spawn.c"),
    Program("concurrency/blocks_outlive_thread.c", is_telling=True),
    Program("concurrency/key_destructors.c"),
    Program("concurrency/producer_consumer.c"),
    Program("concurrency/fuzz.c", ("1", "2", "4", "5000"), is_telling=True),
    Program("concurrency/fuzz.c", ("2", "2", "4", "2000"), HARDENED),
    Program("concurrency/fuzz.c", ("3", "2", "4", "2000"), GUARDED, is_telling=True),
    Program("guard/clean.c", environment=GUARDED),
    Program("failure/huge_sizes.c", reports=False),
    Program("failure/maps_exhausted.c", ("0",), is_telling=True, reports=False),
    Program("failure/maps_exhausted.c", ("100",), reports=False),
    Program("failure/exhaust.c", ("as", "256", "5000"), reports=False),
    Program("failure/exhaust.c", ("data", "256", "100000"), reports=False),
)


def jobs(programs: Iterable[Program], compile_c: Compile, lib: Path) -> list[Job]:
    return [
        Job(
            program.name,
            [compile_c(TESTS / program.source, INCLUDE_TESTS), *program.arguments],
            {"LD_PRELOAD": str(lib)} | dict(program.environment),
            reports=program.reports,
            huge_pages=program.huge_pages,
        )
        for program in programs
    ]


# ---- stats from outside ------------------------------------------------------------------------------------

BLOCKS = {64: 20000, 1000: 777, 32768: 40, 200_000: 7}
OTHER_BLOCKS_MAX = 50  # that the program's libraries hold, of any size
OUTSIDE = "stats-from-outside"
COMMANDS = ("stat", "why")
# A program that waits for a line has allocated when it says so; then the tool looks at it.
LOOK = """
mkfifo /tmp/in /tmp/out
LD_PRELOAD={lib} {program} {blocks} </tmp/in >/tmp/out & pid=$!
exec 4>/tmp/in 5</tmp/out
read -r line <&5; echo >&4; read -r line <&5
{python} -c '{tool}' $pid
kill $pid
"""
TOOL = """
import contextlib, io, json, sys
from hakmem.cli import main
for command in ("stat", "why"):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main([command, sys.argv[1], "--json"], standalone_mode=False)
    print(json.dumps(json.loads(text.getvalue())))
""".replace("'", '"')

# Run once on this machine: what Python and the tool load, and so need there.
LIST_FILES = """
import json, os, sys
sys.argv[1:] = [str(os.getpid())]
exec(TOOL)
files = [name for module in list(sys.modules.values())
         for name in (getattr(module, "__file__", None), getattr(module, "__cached__", None)) if name]
mapped = [line.split()[5] for line in open("/proc/self/maps") if " /" in line]
print(json.dumps(files + mapped))
"""


def tool_files(lib: Path) -> list[Path]:
    environment = preload_environment(lib) | {"PYTHONPATH": str(ROOT / "python")}
    step = captured([sys.executable, "-c", f"TOOL = {TOOL!r}\n{LIST_FILES}"], env=environment, check=True)
    found = json.loads(step.stdout.splitlines()[-1])
    settings = Path(sys.prefix) / "pyvenv.cfg"
    files = {*map(Path, found), Path(sys.executable), Path(sys.base_prefix) / "bin" / "python3", settings}
    return sorted(path for path in files if path.is_file())


def outside_job(compile_c: Compile, lib: Path) -> Job:
    program = compile_c(TESTS / "tool" / "programs" / "blocks.c")
    blocks = " ".join(f"{size}:{count}" for size, count in BLOCKS.items())
    look = LOOK.format(lib=lib, program=program, blocks=blocks, tool=TOOL, python=sys.executable)
    environment = {"PYTHONPATH": str(ROOT / "python"), "HAKMEM_HELPER_THREAD": "0"}
    return Job(OUTSIDE, ["/bin/sh", "-c", look], environment, reports=False)


def outside_files(compile_c: Compile, lib: Path) -> list[Path]:
    return [compile_c(TESTS / "tool" / "programs" / "blocks.c"), lib, *tool_files(lib)]


def wrong_outside(said: str) -> str:
    """The faults in the tool's answer about a program with BLOCKS; empty when all is right."""
    try:
        stat, why = map(json.loads, said.splitlines())
    except ValueError:
        return f"no two lines of JSON:\n{said}"
    for size, count in BLOCKS.items():
        found = next(c for c in stat["classes"] if c["block_bytes"] >= size)
        if not count <= found["live_blocks"] <= count + OTHER_BLOCKS_MAX:
            return f"{count} blocks of {size} bytes are live, the tool sees {found}"
    lines = sum(line["bytes"] for line in why["lines"])
    if abs(lines - why["rss_bytes"]) > why["changed_bytes"]:
        return f"lines of {lines} bytes for RSS of {why['rss_bytes']}"
    return ""
