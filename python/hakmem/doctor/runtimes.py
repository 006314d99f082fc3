"""Language runtimes with their own allocator on top of malloc: what hakmem serves of their memory."""

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
    libraries: re.Pattern[str]  # names of mapped files
    serves: str  # what hakmem serves
    advice: str
    switch: tuple[str, str] | None = None  # the variable, and its value, that makes it use malloc


def runtime(
    name: str, programs: str, libraries: str, serves: str, advice: str, switch: tuple[str, str] | None = None
) -> Runtime:
    return Runtime(name, re.compile(programs), re.compile(libraries), serves, advice, switch)


RUNTIMES = (
    runtime(
        "CPython", r"(python|pypy)\d?(\.\d+)?t?d?$", r"libpython\d",
        "objects of up to 512 bytes come from CPython's own arenas, which bypass malloc; hakmem serves "
        "larger ones and extensions",
        "PYTHONMALLOC=malloc makes all of them use hakmem",
        ("PYTHONMALLOC", "malloc"),
    ),
    runtime(
        "Node.js", r"(node|nodejs|electron|deno|chrome)$", r"libnode\.so|libv8",
        "JavaScript objects are in V8's heap, which V8 maps itself; hakmem serves buffers and C++ code",
        "node --max-old-space-size=MIB limits V8's heap; hakmem why shows it as other anonymous memory",
    ),
    runtime(
        "Java", r"(java|javac)$", r"libjvm\.so",
        "objects, classes and compiled code are in memory that the JVM maps itself; hakmem serves its native "
        "code (JNI, compiler, direct buffers)",
        "-Xmx limits the heap; -XX:NativeMemoryTracking=summary and jcmd PID VM.native_memory show the rest",
    ),
    runtime(
        ".NET", r"dotnet$", r"libcoreclr\.so",
        "objects are in the garbage collector's heap, which it maps itself; hakmem serves native code",
        "DOTNET_GCHeapHardLimit limits that heap",
    ),
    runtime(
        "PHP", r"php(-fpm|-cgi)?[\d.]*$", r"libphp\d?",
        "most memory comes from Zend's own 2 MiB chunks; hakmem serves the libraries of extensions",
        "USE_ZEND_ALLOC=0 makes all of it use hakmem",
        ("USE_ZEND_ALLOC", "0"),
    ),
    runtime(
        "Ruby", r"ruby[\d.]*$", r"libruby",
        "objects are in pages of the garbage collector; hakmem serves those pages and the contents of "
        "objects (strings, arrays)",
        "a high share of live data may be empty slots: GC.stat shows them",
    ),
    runtime(
        "Erlang", r"beam(\.smp)?$", r"^$",
        "most memory comes from Erlang's own carriers, which bypass malloc; hakmem serves drivers and NIFs",
        "+Mea min makes the emulator use malloc",
    ),
)  # fmt: skip
GO_SYMBOL = "runtime.mallocgc"
GO = runtime(
    "Go", r"^$", r"^$",
    "Go has its own heap, which bypasses malloc; hakmem serves only C code (cgo) in a dynamic program",
    "GOMEMLIMIT and GOGC limit that heap",
)  # fmt: skip


def runtime_of(program: str, files: Iterable[str]) -> Runtime | None:
    """By the names of the executable and of mapped files."""
    names = list(files)
    return next(
        (r for r in RUNTIMES if r.programs.match(program) or any(map(r.libraries.match, names))), None
    )


def runtime_finding(found: Runtime, environment: Mapping[str, str]) -> Finding:
    """What hakmem serves of the program's memory."""
    if found.switch and environment.get(found.switch[0], "").removesuffix("_debug") == found.switch[1]:
        name, value = found.switch[0], environment[found.switch[0]]
        return ok(NAME, f"{found.name}, with {name}={value}: all of its objects use malloc")
    return advice(NAME, f"{found.name}: {found.serves}", found.advice)
