"""Programs that have an allocator of their own above malloc: what hakmem serves of their memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hakmem.doctor.findings import Finding, advice, ok

NAME = "own allocator"


@dataclass(frozen=True)
class Runtime:
    """A language's own heap."""

    name: str
    programs: re.Pattern[str]  # names of executables
    libraries: re.Pattern[str]  # names of files that it maps
    serves: str  # what hakmem sees of it
    helps: str
    switch: tuple[str, str] | None = None  # the variable, and its value, that brings it to malloc


def runtime(
    name: str, programs: str, libraries: str, serves: str, helps: str, switch: tuple[str, str] | None = None
) -> Runtime:
    return Runtime(name, re.compile(programs), re.compile(libraries), serves, helps, switch)


RUNTIMES = (
    runtime(
        "CPython", r"(python|pypy)\d?(\.\d+)?t?d?$", r"libpython\d",
        "objects of up to 512 bytes come from CPython's own arenas, which are mapped past malloc; hakmem "
        "serves larger ones, and what extensions ask for",
        "PYTHONMALLOC=malloc brings all of them to hakmem",
        ("PYTHONMALLOC", "malloc"),
    ),
    runtime(
        "Node.js", r"(node|nodejs|electron|deno|chrome)$", r"libnode\.so|libv8",
        "JavaScript's objects lie in V8's heap, which V8 maps itself; hakmem serves buffers and C++ code",
        "node --max-old-space-size=MIB bounds V8's part; hakmem why shows it as other anonymous memory",
    ),
    runtime(
        "Java", r"(java|javac)$", r"libjvm\.so",
        "objects, classes and compiled code lie in memory that the JVM maps itself; hakmem serves its native "
        "code (JNI, compiler, direct buffers)",
        "-Xmx bounds the heap; -XX:NativeMemoryTracking=summary and jcmd PID VM.native_memory tell the rest",
    ),
    runtime(
        ".NET", r"dotnet$", r"libcoreclr\.so",
        "objects lie in the garbage collector's heap, which it maps itself; hakmem serves native code",
        "DOTNET_GCHeapHardLimit bounds that heap",
    ),
    runtime(
        "PHP", r"php(-fpm|-cgi)?[\d.]*$", r"libphp\d?",
        "most memory comes from Zend's own chunks of 2 MiB; hakmem serves extensions' libraries",
        "USE_ZEND_ALLOC=0 brings all of it to hakmem",
        ("USE_ZEND_ALLOC", "0"),
    ),
    runtime(
        "Ruby", r"ruby[\d.]*$", r"libruby",
        "objects lie in the collector's pages, taken whole; hakmem serves those and what objects hold "
        "(strings, arrays)",
        "a high share of live data may be slots without objects: GC.stat tells",
    ),
    runtime(
        "Erlang", r"beam(\.smp)?$", r"^$",
        "most memory comes from Erlang's own carriers, mapped past malloc; hakmem serves drivers and NIFs",
        "+Mea min makes the emulator use malloc",
    ),
)  # fmt: skip
GO_SYMBOL = "runtime.mallocgc"
GO = runtime(
    "Go", r"^$", r"^$",
    "Go's heap is its own, mapped past malloc; hakmem serves C code only (cgo), in a dynamic program",
    "GOMEMLIMIT and GOGC bound that heap",
)  # fmt: skip


def runtime_of(program: str, files: Iterable[str]) -> Runtime | None:
    """By the names of the executable and of what is mapped with it."""
    names = list(files)
    return next(
        (r for r in RUNTIMES if r.programs.match(program) or any(map(r.libraries.match, names))), None
    )


def runtime_finding(found: Runtime, environment: Mapping[str, str]) -> Finding:
    """What hakmem sees of the program."""
    if found.switch and environment.get(found.switch[0], "").removesuffix("_debug") == found.switch[1]:
        name, value = found.switch[0], environment[found.switch[0]]
        return ok(NAME, f"{found.name}, with {name}={value}: all of its objects come from malloc")
    return advice(NAME, f"{found.name}: {found.serves}", found.helps)
