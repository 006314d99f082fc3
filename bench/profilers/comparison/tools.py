"""The profilers: how each is started, asked and read.  All answers are folded stacks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from .places import BUILD, LIBRARY, debian_library
from .programs import Program, python_with

LIMIT_S = 300.0
NATIVE = ("C++", "Rust", "node", "Python")


@dataclass(frozen=True)
class Start:
    """How a program is started."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def with_arguments(self, *words: str) -> list[str]:
        return [*self.words, *words]

    def variables(self) -> dict[str, str]:
        return os.environ | self.environment


def output_of(*words: str | Path, **options: object) -> str:
    step = subprocess.run(
        [str(word) for word in words],
        capture_output=True, text=True, errors="replace", check=False, timeout=LIMIT_S, **options,  # type: ignore[call-overload]
    )  # fmt: skip
    if step.returncode:
        raise RuntimeError(
            f"{Path(words[0]).name} ended with {step.returncode}: {step.stderr.strip()[-300:]}"
        )
    told: str = step.stdout
    return told


class Tool:
    """One way to ask one profiler.  Those that attach ask a process that runs; the others start it anew."""

    name = ""
    needs = ""  # the preparation before the question
    attaches = False
    runs: tuple[str, ...] = NATIVE
    has_cost = True  # False: as the row of the same tool above
    ends_process = False  # by its way of asking; another that ends it has failed
    is_there_when_off = True  # False: nothing is loaded until it is asked
    turns_share = 1.0  # of the work, for slow tools: they do it once

    def missing(self) -> str:
        return ""

    def off(self, program: Program) -> Start:
        return Start(program.words)

    def on(self, program: Program, folder: Path) -> Start:
        raise NotImplementedError

    def ask(self, pid: int, folder: Path, seconds: float) -> Iterable[str]:
        """Asks a process that was started as `off` says."""
        raise NotImplementedError

    def report(self, program: Program, folder: Path) -> Iterable[str]:
        """The answer about a process that was started as `on` says and has ended."""
        raise NotImplementedError


class Hakmem(Tool):
    name = "hakmem profile"
    needs = "runs on hakmem"
    attaches = True
    tool = BUILD / "venv" / "bin" / "hakmem"

    def missing(self) -> str:
        return "" if LIBRARY.exists() and self.tool.exists() else "not built: make"

    def off(self, program: Program) -> Start:
        return Start(program.telling(), {"LD_PRELOAD": str(LIBRARY), **program.telling_environment})

    def on(self, program: Program, folder: Path) -> Start:  # noqa: ARG002
        start = self.off(program)
        return Start(start.words, start.environment | {"HAKMEM_PROFILE": "1"})

    def ask(self, pid: int, folder: Path, seconds: float) -> Iterable[str]:
        out = folder / "x.folded"
        output_of(self.tool, "profile", str(pid), "--for", f"{seconds:g}s", "-o", out)
        return out.read_text().splitlines()


class Heaptrack(Tool):
    name = "heaptrack"
    needs = "a start under it"
    is_there_when_off = False
    turns_share = 0.2

    def missing(self) -> str:
        return "" if shutil.which("heaptrack") else "apt-get install heaptrack"

    def on(self, program: Program, folder: Path) -> Start:
        return Start(["heaptrack", "-o", str(folder / "heaptrack"), *program.words])

    def report(self, program: Program, folder: Path) -> Iterable[str]:  # noqa: ARG002
        return self.read(folder)

    def read(self, folder: Path) -> Iterable[str]:
        [file] = folder.glob("heaptrack.*")
        out = folder / "x.folded"
        output_of("heaptrack_print", "-f", file, "-F", out, "--flamegraph-cost-type", "leaked", "-t", "0")
        return out.read_text().splitlines()


class HeaptrackAttached(Heaptrack):
    name = "heaptrack --pid"
    needs = "nothing; gdb"
    attaches = True
    has_cost = False
    ends_process = True

    def missing(self) -> str:
        return super().missing() or ("" if shutil.which("gdb") else "apt-get install gdb")

    def ask(self, pid: int, folder: Path, seconds: float) -> Iterable[str]:
        words = ["heaptrack", "-o", str(folder / "heaptrack"), "--pid", str(pid)]
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        ) as tool:  # fmt: skip
            try:
                assert tool.stdout is not None
                said = list(takewhile(lambda line: line != "injection finished\n", tool.stdout))
                if "libheaptrack_inject" not in Path(f"/proc/{pid}/maps").read_text():
                    raise RuntimeError(f"gdb did not inject it: {said[-2].strip() if said[1:] else ''}")
                time.sleep(seconds)
                os.kill(pid, signal.SIGTERM)  # its file is whole when the process has gone
                tool.wait(LIMIT_S)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(tool.pid, signal.SIGKILL)
        return self.read(folder)


class Memray(Tool):
    name = "memray run"
    needs = "a start under it"
    runs = ("Python",)
    is_there_when_off = False
    turns_share = 0.2

    def missing(self) -> str:
        return "" if python_with("memray") else "pip install memray"

    def on(self, program: Program, folder: Path) -> Start:
        python = str(python_with("memray"))
        options = ["--trace-python-allocators", "-q", "-f", "-o", str(folder / "memray.bin")]
        return Start([python, "-m", "memray", "run", *options, program.words[-1]])

    def report(self, program: Program, folder: Path) -> Iterable[str]:  # noqa: ARG002
        return self.read(folder)

    def read(self, folder: Path) -> Iterable[str]:
        """By its own reader: its reports are pages."""
        helper = Path(__file__).with_name("memray_leaks.py")
        return output_of(str(python_with("memray")), helper, folder / "memray.bin").splitlines()


class MemrayAttached(Memray):
    name = "memray attach"
    needs = "memray in its environment; lldb or gdb"
    attaches = True
    has_cost = False

    def ask(self, pid: int, folder: Path, seconds: float) -> Iterable[str]:
        python, out = str(python_with("memray")), folder / "memray.bin"
        method = "lldb" if shutil.which("lldb") else "auto"  # gdb 13 fails on processors with AMX
        output_of(
            python, "-m", "memray", "attach", "-o", out, "--trace-python-allocators", "--method", method,
            "--duration", str(int(seconds)), str(pid),
        )  # fmt: skip
        wait_for_file(folder, "memray.bin")
        time.sleep(seconds + 0.5)
        return self.read(folder)


def collapsed(reader: str, program: Program, folder: Path) -> list[str]:
    """The last heap that was written there: both tools are readers of gperftools' format."""
    file = max(folder.glob("heap.*.heap"), key=lambda path: path.stat().st_mtime)
    return output_of(reader, "--collapsed", "--inuse_space", program.words[0], file).splitlines()


class Jemalloc(Tool):
    name = "jemalloc + jeprof"
    needs = "MALLOC_CONF=prof:true at its start"
    library = debian_library("libjemalloc.so.2")

    def missing(self) -> str:
        return "" if self.library and shutil.which("jeprof") else "apt-get install libjemalloc-dev"

    def start(self, program: Program, options: str) -> Start:
        environment = {"LD_PRELOAD": str(self.library), "MALLOC_CONF": options}
        return Start(program.words, environment | program.telling_environment)

    def off(self, program: Program) -> Start:
        return self.start(program, "prof:true,prof_active:false")

    def on(self, program: Program, folder: Path) -> Start:
        return self.start(program, f"prof:true,prof_final:true,prof_prefix:{folder}/heap")

    def report(self, program: Program, folder: Path) -> Iterable[str]:
        return collapsed("jeprof", program, folder)


class Gperftools(Tool):
    name = "gperftools + pprof"
    needs = "HEAPPROFILE at its start"
    library = debian_library("libtcmalloc.so.4")
    turns_share = 0.05

    def missing(self) -> str:
        found = self.library and shutil.which("google-pprof")
        return "" if found else "apt-get install google-perftools"

    def off(self, program: Program) -> Start:
        return Start(program.words, {"LD_PRELOAD": str(self.library)} | program.telling_environment)

    def on(self, program: Program, folder: Path) -> Start:
        start = self.off(program)
        return Start(start.words, start.environment | {"HEAPPROFILE": str(folder / "heap")})

    def report(self, program: Program, folder: Path) -> Iterable[str]:
        return collapsed("google-pprof", program, folder)


class Dhat(Tool):
    name = "valgrind --tool=dhat"
    needs = "a start under it"
    runs = ("C++", "Rust")
    is_there_when_off = False
    turns_share = 0.1

    def missing(self) -> str:
        return "" if shutil.which("valgrind") else "apt-get install valgrind"

    def on(self, program: Program, folder: Path) -> Start:
        return Start(["valgrind", "-q", "--tool=dhat", f"--dhat-out-file={folder}/dhat", *program.words])

    def report(self, program: Program, folder: Path) -> Iterable[str]:  # noqa: ARG002
        found = json.loads((folder / "dhat").read_text())
        names = found["ftbl"]
        for point in found["pps"]:
            frames = [names[number].replace(";", ":") for number in reversed(point["fs"])]
            yield f"{';'.join(frames)} {point.get('eb', 0)}"


class Bytehound(Tool):
    name = "bytehound"
    needs = "a start under it"

    def missing(self) -> str:
        return "neither in crates.io nor in Debian, and not maintained since 2023"


def wait_for_file(folder: Path, pattern: str) -> None:
    """RuntimeError if nothing has been written in time."""
    end = time.monotonic() + LIMIT_S
    while not any(path.stat().st_size for path in folder.glob(pattern)):
        if time.monotonic() > end:
            raise RuntimeError(f"no {pattern} after {LIMIT_S:g} s")
        time.sleep(0.05)


TOOLS: list[Tool] = [
    Hakmem(), Heaptrack(), HeaptrackAttached(), Memray(), MemrayAttached(), Jemalloc(), Gperftools(), Dhat(),
    Bytehound(),
]  # fmt: skip
