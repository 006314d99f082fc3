"""Language runtimes with their own allocator on top of malloc: the memory that hakmem serves, and the memory
that it does not see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hakmem.base.errors import HakmemError
from hakmem.doctor.findings import Finding, advice, ok
from hakmem.target.locate import executable_of
from hakmem.target.process import DELETED, Process
from hakmem.target.process import Mapping as ProcessMapping

NAME = "own allocator"
CPYTHON, FREE_THREADED, PYPY = "CPython", "free-threaded CPython", "PyPy"
PYTHON_SWITCH = ("PYTHONMALLOC", "malloc")


@dataclass(frozen=True)
class Runtime:
    """A language's own heap."""

    name: str
    programs: str  # patterns of names of executables
    libraries: str  # and of names of mapped files
    serves: str  # served by hakmem
    advice: str
    switch: tuple[str, str] | None = None  # the variable, and its value, that makes it use malloc
    left_out: str = ""  # the objects that do not, until it is set; with the verb


RUNTIMES = (
    Runtime(
        PYPY, r"pypy\d?(\.\d+)?$", r"libpypy\d",
        "objects are in the garbage collector's own heap; hakmem serves extensions, and that heap's "
        "own requests to malloc",
        "PYPY_GC_MAX limits that heap",
    ),
    Runtime(
        FREE_THREADED, r"python\d\.\d+td?$", r"libpython\d\.\d+td?\.so",
        "objects come from CPython's own copy of mimalloc, which maps its memory itself; hakmem serves "
        "extensions and the C library",
        "a build with the global lock uses hakmem with PYTHONMALLOC=malloc",
    ),
    Runtime(
        CPYTHON, r"python\d?(\.\d+)?d?$", r"libpython\d",
        "objects of up to 512 bytes come from CPython's own arenas, which bypass malloc; hakmem serves "
        "larger ones and extensions",
        "hakmem run --python, or PYTHONMALLOC=malloc, makes all of them use malloc",
        PYTHON_SWITCH,
        "CPython objects up to 512 bytes (pymalloc) are",
    ),
    Runtime(
        "Node.js", r"(node|nodejs|electron|deno|chrome)$", r"libnode\.so|libv8",
        "JavaScript objects are in V8's heap, which V8 maps itself; hakmem serves buffers and C++ code",
        "node --max-old-space-size=MIB limits V8's heap; hakmem why shows it as other anonymous memory",
    ),
    Runtime(
        "Java", r"(java|javac)$", r"libjvm\.so",
        "objects, classes and compiled code are in memory that the JVM maps itself; hakmem serves its native "
        "code (JNI, compiler, direct buffers)",
        "-Xmx limits the heap; -XX:NativeMemoryTracking=summary and jcmd PID VM.native_memory show the rest",
    ),
    Runtime(
        ".NET", r"dotnet$", r"libcoreclr\.so",
        "objects are in the garbage collector's heap, which it maps itself; hakmem serves native code",
        "DOTNET_GCHeapHardLimit limits that heap",
    ),
    Runtime(
        "PHP", r"php(-fpm|-cgi)?[\d.]*$", r"libphp\d?",
        "most memory comes from Zend's own 2 MiB chunks; hakmem serves the libraries of extensions",
        "USE_ZEND_ALLOC=0 makes all of it use malloc",
        ("USE_ZEND_ALLOC", "0"),
        "PHP's values (in Zend's own chunks) are",
    ),
    Runtime(
        "Ruby", r"ruby[\d.]*$", r"libruby",
        "objects are in pages of the garbage collector; hakmem serves those pages and the contents of "
        "objects (strings, arrays)",
        "a high share of live data may be empty slots: GC.stat shows them",
    ),
    Runtime(
        "Erlang", r"beam(\.smp)?$", r"^$",
        "most memory comes from Erlang's own carriers, which bypass malloc; hakmem serves drivers and NIFs",
        "+Mea min makes the emulator use malloc",
    ),
)  # fmt: skip
GO_SYMBOL = "runtime.mallocgc"
GO = Runtime(
    "Go", r"^$", r"^$",
    "Go has its own heap, which bypasses malloc; hakmem serves only C code (cgo) in a dynamic program",
    "GOMEMLIMIT and GOGC limit that heap",
)  # fmt: skip


def runtime_of(program: str, files: Iterable[str]) -> Runtime | None:
    """Recognised by the names of the executable and of mapped files."""
    names = list(files)
    for one in RUNTIMES:
        if re.match(one.programs, program) or any(re.match(one.libraries, name) for name in names):
            return one
    return None


def runtime_in(process: Process, maps: Sequence[ProcessMapping]) -> Runtime | None:
    program = executable_of(process, maps).rpartition("/")[2].removesuffix(DELETED)
    return runtime_of(program, (one.file_name for one in maps if one.is_file))


def is_switched(found: Runtime, environment: Mapping[str, str]) -> bool:
    """Does it use malloc for its objects, because it was told to?"""
    return found.switch is not None and (
        environment.get(found.switch[0], "").removesuffix("_debug") == found.switch[1]
    )


def ignores_environment(words: Sequence[str]) -> str | None:
    """The option in a CPython command line that makes it ignore PYTHONMALLOC, -E or -I."""
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif not word.startswith("-") or word in ("-", "--"):
            return None
        elif match := re.match(r"-([^-cmWXEI]*)([cmWXEI])(.*)", word):
            if match[2] in "EI":
                return f"-{match[2]}"
            if match[2] in "cm":
                return None
            skip = not match[3]  # the value is the next word
    return None


def hidden(found: Runtime | None, environment: Mapping[str, str], words: Sequence[str] = ()) -> str | None:
    """One sentence, if it could use malloc but does not: figures by class or site are without its objects."""
    if found is None or found.switch is None:
        return None
    is_ignored = found.name == CPYTHON and ignores_environment(words)
    if is_switched(found, environment) and not is_ignored:
        return None
    return f"{found.left_out} not included: {found.advice}."


def hidden_in(process: Process | None) -> list[str]:
    """`hidden` of a running process, as a note; none of a core, or where its environment cannot be read."""
    if process is None:
        return []
    try:
        note = hidden(runtime_in(process, process.maps()), process.environment(), process.command)
    except HakmemError:
        note = None
    return [note] if note else []


def runtime_finding(found: Runtime, environment: Mapping[str, str]) -> Finding:
    """The part of the program's memory that hakmem serves."""
    if found.switch and is_switched(found, environment):
        name, value = found.switch[0], environment[found.switch[0]]
        return ok(NAME, f"{found.name}, with {name}={value}: all of its objects use malloc")
    return advice(NAME, f"{found.name}: {found.serves}", found.advice)
