"""Can hakmem be preloaded into a command?  If not, why, and how to fix it.

A *trap* is one reason.  With a fatal one the program would silently run without hakmem; `hakmem run` refuses
then.  The others are reported by `hakmem doctor`.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.errors import CommandError
from hakmem.target.allocators import bundled_in
from hakmem.target.elf import ElfFile, open_elf
from hakmem.target.locate import SYMBOL

FORTIFY = "libhakmem-fortify.so"  # checks bounds in functions of the C library; not built for musl
SHELL = "/bin/sh"
SHEBANG_BYTES = 256
SCRIPTS_DEEP = 4  # the kernel's own limit
LIBRARIES_TIMEOUT_S = 10
SEVERAL = "several hakmems"  # the trap's name, and doctor's of a process
HARMLESS = (SEVERAL, "bundled allocator")  # not fatal
LISTED = re.compile(r"\s*(/.*) \(0x[0-9a-f]+\)$")  # the path may hold spaces
# Those that bring a malloc; the sanitizer of undefined behaviour does not.
SANITIZERS = {
    "asan": "AddressSanitizer",
    "hwasan": "HWAddressSanitizer",
    "lsan": "LeakSanitizer",
    "msan": "MemorySanitizer",
    "tsan": "ThreadSanitizer",
}
C_LIBRARIES = ("libc.so", "libc-", "ld-linux", "ld-musl", "ld-", "libc.musl")


@dataclass(frozen=True)
class Trap:
    """One reason why hakmem would not serve (all of) a program."""

    name: str
    what: str
    advice: str

    @property
    def is_fatal(self) -> bool:
        return self.name not in HARMLESS


@dataclass(frozen=True)
class Examined:
    """A command as the kernel would run it."""

    program: Path  # finally executed: a script's interpreter
    words: Sequence[str]  # its command line; unknown for a script
    scripts: list[Path]  # on the way there
    libraries: list[Path]
    traps: list[Trap]

    @property
    def fatal(self) -> Trap | None:
        return next((trap for trap in self.traps if trap.is_fatal), None)


def resolve(word: str) -> Path:
    """The file that a shell would run; errors have the shell's exit statuses."""
    found = shutil.which(word)
    if found is None:
        if "/" in word and os.path.exists(word):
            reason = "is a directory" if Path(word).is_dir() else "is not executable (chmod +x)"
            raise CommandError(f"{word} {reason}", CommandError.NOT_EXECUTABLE)
        where = "no such file" if "/" in word else "not found in PATH"
        raise CommandError(f"{word}: {where}", CommandError.NOT_FOUND)
    return Path(found)


def examine(words: Sequence[str], library: Path | None) -> Examined:
    """`library` would be preloaded; None: unknown, and not compared."""
    program = resolve(words[0])
    scripts: list[Path] = []
    while (interpreter := _interpreter_of(program)) is not None and len(scripts) < SCRIPTS_DEEP:
        scripts.append(program)
        program = resolve(interpreter)
    file = open_elf(program)
    libraries = _libraries(program, file.interpreter) if file is not None and file.interpreter else []
    traps = list(_traps(program, file, library, libraries))
    return Examined(program, () if scripts else words, scripts, libraries, traps)


def _interpreter_of(path: Path) -> str | None:
    """A script's interpreter; `env` is resolved.  A text without #! is run by the shell."""
    try:
        with path.open("rb") as file:
            head = file.read(SHEBANG_BYTES)
    except OSError:
        return None
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].decode(errors="replace").split()
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return words[0] if words else None
    return None if b"\0" in head or head.startswith(b"\x7fELF") else SHELL


def _libraries(program: Path, loader: str) -> list[Path]:
    """All libraries that the loader would map, as reported by the loader itself.

    Glibc's also tells when the program is started with LD_TRACE_LOADED_OBJECTS; musl's would run it."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    try:
        step = subprocess.run(
            [loader, "--list", str(program.resolve())], env=environment, capture_output=True, text=True,
            errors="replace", stdin=subprocess.DEVNULL, timeout=LIBRARIES_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = (LISTED.match(line.rpartition("=> ")[2]) for line in step.stdout.splitlines())
    return [Path(path[1]) for path in found if path]


# ---- the traps ---------------------------------------------------------------------------------------


def _traps(
    program: Path, file: ElfFile | None, library: Path | None, libraries: list[Path]
) -> Iterator[Trap]:
    if file is None:
        yield Trap("format", f"{program} is not an ELF program", "name the program that runs it")
        return
    yield from _rights(program)
    is_linked = file.symbol(SYMBOL) is not None
    if is_linked and file.is_static:
        return  # with libhakmem.a: no preload needed
    if file.is_static:
        yield Trap(
            "static",
            f"{program} is linked statically: no dynamic loader runs, so nothing can be preloaded",
            "link it with libhakmem.a, or dynamically",
        )
        return
    if file.interpreter is not None and not file.dynamic["needed"] and not is_linked:
        yield Trap(
            "no library",
            f"{program} needs no library: if it calls malloc, that is linked in, and not a preloaded one",
            "link it with the C library's libc.so (is it where the linker looks?), or with libhakmem.a",
        )
        return
    yield from _several(program, file if is_linked else None, library, libraries)
    if is_linked and file.exports("malloc"):
        return
    if (trap := misfit(program, file, library)) is not None:
        yield trap
    if (trap := _sanitizer(program, file, libraries)) is not None:
        yield trap
        return  # its runtime defines malloc, which is not the program's own
    yield from _bundled(program, file, libraries)


def _sanitizer(program: Path, file: ElfFile, libraries: list[Path]) -> Trap | None:
    """By the runtime's library (gcc), or its first function, linked into the program (clang)."""
    for name, title in SANITIZERS.items():
        runtime = re.compile(rf"lib(?:clang_rt\.)?{name}\b")
        if file.symbol(f"__{name}_init") is not None or any(runtime.match(path.name) for path in libraries):
            return Trap(
                "sanitizer",
                f"{program} is built with {title}, which needs its own malloc; with another it "
                "fails at the start, or checks nothing",
                "start it as it is; or build it without that sanitizer, and run it with hakmem run --harden",
            )
    return None


def _several(
    program: Path, linked: ElfFile | None, library: Path | None, libraries: list[Path]
) -> Iterator[Trap]:
    """Hakmems beside the preloaded one.  Libraries of one SONAME are the same to the loader."""
    if linked is not None:
        serves = "its malloc" if linked.exports("malloc") else "its requests by hak_malloc"
        yield Trap(
            SEVERAL,
            f"{program} has hakmem linked in, which serves {serves}: with the preloaded one there are two",
            "start it as it is, without hakmem run and LD_PRELOAD, or build it without",
        )
    ours = open_elf(library) if library is not None else None
    for path in libraries:
        file = open_elf(path)
        if file is None or ours is None or file.symbol(SYMBOL) is None:
            continue
        if file.dynamic["soname"] != ours.dynamic["soname"]:
            yield Trap(
                SEVERAL,
                f"{program} has hakmem already, in {path}: with the preloaded {library} there are two",
                f"start it as it is, or preload that one: HAKMEM_LIBRARY={path}",
            )


def _rights(program: Path) -> Iterator[Trap]:
    """The loader ignores LD_PRELOAD if the program gains privileges when it starts."""
    status = program.stat()
    gains = []
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        gains.append("setuid")
    if status.st_mode & stat.S_ISGID and status.st_gid != os.getgid():
        gains.append("setgid")
    if os.getuid() != 0 and _has_capabilities(program):
        gains.append("file capabilities")
    if gains:
        yield Trap(
            "setuid",
            f"{program} gains privileges when it starts ({', '.join(gains)}): the loader then ignores "
            "LD_PRELOAD",
            "run it as the user whose privileges it gains, link it with libhakmem.a, or add libhakmem.so to "
            "/etc/ld.so.preload",
        )


def _has_capabilities(program: Path) -> bool:
    try:
        return bool(os.getxattr(program, "security.capability"))
    except OSError:
        return False


def misfit(program: Path, file: ElfFile, library: Path | None) -> Trap | None:
    """Program and library must match in machine and C library."""
    ours = open_elf(library) if library is not None else None
    if ours is None:
        return None
    if (ours.machine, ours.is_ours) != (file.machine, file.is_ours):
        return Trap(
            "machine",
            f"{program} is built for {_machine(file)}, {library} for {_machine(ours)}",
            "build hakmem for that machine",
        )
    if _c_library(file) != _c_library(ours):
        return Trap(
            "libc",
            f"{program} runs on {_c_library(file)}, {library} was built for {_c_library(ours)}",
            f"build hakmem with a compiler for {_c_library(file)}",
        )
    return None


def _machine(file: ElfFile) -> str:
    return file.machine + ("" if file.is_ours else " (32-bit)")


def _c_library(file: ElfFile) -> str:
    """By its loader, or a library's dependencies: musl calls itself libc.so, on Alpine libc.musl-*.so.1."""
    names = [file.interpreter or "", *file.dynamic["needed"]]
    return "musl" if "libc.so" in names or any("musl" in name for name in names) else "glibc"


def _bundled(program: Path, file: ElfFile, libraries: list[Path]) -> Iterator[Trap]:
    """Bundled allocators.  The program's own malloc takes precedence over a preloaded one; a library's does
    not."""
    if file.symbol("malloc") is not None:
        yield Trap(
            "own malloc",
            f"{program} defines malloc itself{_named(file)}, which takes precedence over any preload",
            "build it without its own malloc (redis: make MALLOC=libc), or link it with libhakmem.a instead",
        )
    elif name := bundled_in(file):
        yield Trap(
            "bundled allocator",
            f"{program} bundles {name}; hakmem neither serves nor sees its allocations there",
            "build it with the system's malloc so that hakmem serves all of its memory",
        )
    for path in libraries:
        library = None if path.name.startswith(C_LIBRARIES) else open_elf(path)
        if library is not None and library.symbol(SYMBOL) is not None:
            continue  # hakmem's own
        if library is not None and (library.symbol("malloc") is not None or bundled_in(library)):
            yield Trap(
                "bundled allocator",
                f"{path} bundles an allocator{_named(library)}; malloc goes to hakmem, its own functions do "
                "not",
                "check whether the program can do without that library",
            )


def _named(file: ElfFile) -> str:
    name = bundled_in(file)
    return f" ({name})" if name else ""
