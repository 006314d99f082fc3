"""A process as /proc shows it: names, times, mappings, memory figures.

A PID is not an identity: the kernel reuses it as soon as the process is gone.  A `Process` remembers its
start time, and `check_same` raises if the PID belongs to another process by now.

Nor does its memory always lie under its PID: a main thread that ends before the others (pthread_exit) stays
as a zombie without memory, under the number of the process.  Then a living thread's number leads there
(`memory_id`), from one moment to the next.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from io import FileIO
from pathlib import Path

from hakmem.base.errors import AccessRefusedError, HakmemError, ProcessGoneError
from hakmem.layout.memory import PAGE_BYTES
from hakmem.target.access import gone, refused

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
DELETED = " (deleted)"
KERNEL_THREAD = 0x00200000  # PF_KTHREAD in include/linux/sched.h
ENDED = "ZXx"  # states of a thread, in /proc/PID/stat
SYSCALL_WORDS_MIN = 3
KEEPER_NAME = "hakmem-keeper"  # src/os/os.h: OS_KEEPER_NAME
# 55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0    [heap]
MAPS_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+) *(.*)")
SMAPS = re.compile(r"^([0-9a-f]+-.*)\n((?:\w+:.*\n?)*)", re.MULTILINE)  # a line of maps, and its figures
SMAPS_RSS = re.compile(r"^([0-9a-f]+)-([0-9a-f]+)(?: \S+){4} *(.*)\n(?:\w+:.*\n)*?Rss: *(.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/PID/maps (or of a core's note)."""

    start: int
    end: int
    permissions: str  # rwxp, rwxs
    offset: int
    device: str
    inode: int
    path: str  # "" for anonymous memory; "[heap]", "[stack]" …

    @property
    def is_file(self) -> bool:
        return self.path.startswith("/") and self.inode != 0

    @property
    def file_name(self) -> str:
        return self.path.removesuffix(DELETED).rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class DetailedMapping:
    """One mapping of /proc/PID/smaps with its figures in bytes, under the kernel's names (Rss, Pss,
    Anonymous, AnonHugePages, Swap …)."""

    mapping: Mapping
    figures: dict[str, int]

    @property
    def rss_bytes(self) -> int:
        return self.figures.get("Rss", 0)


@dataclass(frozen=True)
class ProcessFigures:
    """The kernel's figures of a process."""

    rss_bytes: int
    rss_anonymous_bytes: int
    swap_bytes: int
    minor_faults: int
    major_faults: int
    threads: int
    cpu_s: float


@dataclass
class Process:
    """One running process; all methods may raise ProcessGoneError or AccessRefusedError."""

    pid: int
    start_ticks: int = field(default=-1)  # since boot: with the PID, the process's identity
    is_stopped: bool = field(default=False, compare=False)  # by the tool

    def __post_init__(self) -> None:
        if self.start_ticks < 0:
            self.start_ticks = int(self._stat(self.pid)[19])

    # ---- identity ----------------------------------------------------------------------------------

    def check_same(self) -> None:
        """Raises if the process has ended, or its PID has been reused."""
        stat = self._stat(self.pid)
        state, start_ticks = stat[0], int(stat[19])
        if start_ticks != self.start_ticks:
            raise ProcessGoneError(
                f"process {self.pid} ended while it was being read, and its PID has been reused; "
                "`hakmem ps` lists the running processes"
            )
        if state in ENDED and self._living_thread() is None:
            raise ProcessGoneError(f"process {self.pid} ended while it was being read")

    @property
    def memory_id(self) -> int:
        """The number that leads to its memory now; the PID where none does."""
        with suppress(ProcessGoneError):
            if self._stat(self.pid)[0] in ENDED:
                return self._living_thread() or self.pid
        return self.pid

    @cached_property
    def name(self) -> str:
        return self._text(f"/proc/{self.pid}/comm").rstrip("\n")

    @cached_property
    def command(self) -> list[str]:
        """The command line; the name in brackets if it has none (a kernel thread, a zombie)."""
        words = self._read("cmdline").rstrip("\0").split("\0")
        return words if words != [""] else [f"[{self.name}]"]

    @property
    def state(self) -> str:
        """R running, S sleeping, D in uninterruptible sleep, T stopped, Z zombie …"""
        return self._stat(self.memory_id)[0]

    @cached_property
    def has_memory(self) -> bool:
        """False for kernel threads and zombies."""
        return int(self._stat(self.memory_id)[20]) > 0

    @property
    def is_kernels(self) -> bool:
        """Is it a thread of the kernel?  A process that is ending has no memory either."""
        return int(self._stat(self.pid)[6]) & KERNEL_THREAD != 0

    def environment(self) -> dict[str, str]:
        """The environment at its start; a process may overwrite it (process titles)."""
        strings = (line.partition("=") for line in self._read("environ").split("\0"))
        return {name: value for name, equals, value in strings if equals}

    def limits(self) -> dict[str, str]:
        """/proc/PID/limits: the soft limit of each, "unlimited" or a number."""
        rows = (re.split(r"  +", line) for line in self._lines("limits")[1:])
        return {row[0]: row[1] for row in rows if len(row) > 1}

    # ---- mappings ----------------------------------------------------------------------------------

    def maps(self) -> list[Mapping]:
        return [parse_mapping(line) for line in self._lines("maps")]

    def smaps(self) -> list[DetailedMapping]:
        """Slow in a large process: the kernel walks its page tables."""
        found = SMAPS.findall(self.smaps_text())
        return [DetailedMapping(parse_mapping(line), _figures(rest.splitlines())) for line, rest in found]

    def smaps_text(self) -> str:
        return self._read("smaps")

    def smaps_rollup(self) -> dict[str, int]:
        """The sums over all mappings, in bytes."""
        return _figures(self._lines("smaps_rollup")[1:])

    # ---- figures -----------------------------------------------------------------------------------

    def figures(self) -> ProcessFigures:
        stat, status = self._stat(self.memory_id), self.status()
        return ProcessFigures(
            rss_bytes=kib(status.get("VmRSS")),
            rss_anonymous_bytes=kib(status.get("RssAnon")),
            swap_bytes=kib(status.get("VmSwap")),
            minor_faults=int(stat[7]),
            major_faults=int(stat[9]),
            threads=int(stat[17]),
            cpu_s=(int(stat[11]) + int(stat[12])) / CLOCK_TICKS_PER_S,
        )

    def resident_bytes(self) -> tuple[int, int]:
        """Anonymous, and of files or shared: as `status` has it, by a file that takes a microsecond."""
        resident, shared = map(int, self._read("statm").split()[1:3])
        return (resident - shared) * PAGE_BYTES, shared * PAGE_BYTES

    def status(self) -> dict[str, str]:
        """/proc/PID/status: its fields as text."""
        lines = (line.partition(":") for line in self._lines("status"))
        return {name: value.strip() for name, _, value in lines}

    def thread_names(self) -> dict[int, str]:
        """Names by thread id, as the process itself sees the ids.  Threads that end meanwhile are omitted."""
        names: dict[int, str] = {}
        for thread in self.thread_ids():
            with suppress(HakmemError):
                name = self._text(f"/proc/{self.pid}/task/{thread}/comm")
                names[self.own_id(thread)] = name.rstrip("\n")
        return names

    def thread_ids(self) -> list[int]:
        try:
            return list(map(int, os.listdir(self.path("task"))))
        except OSError as error:
            raise self._error(error) from None

    def system_calls(self) -> dict[int, list[str]]:
        """The kernel's words on each thread: "number arguments… stack-pointer program-counter",
        "-1 stack-pointer program-counter", or "running"; none where it has no such file (some containers).
        Threads that end meanwhile are omitted."""
        found: dict[int, list[str]] = {}
        for thread in self.thread_ids():
            folder = self.path("task") / str(thread)
            try:
                found[thread] = (folder / "syscall").read_text().split()
            except OSError:
                if folder.exists():
                    found[thread] = []
        return found

    def stack_pointers(self) -> list[int]:
        """Those of blocked threads, sorted."""
        calls = self.system_calls().values()
        return sorted(int(words[-2], 16) for words in calls if len(words) >= SYSCALL_WORDS_MIN)

    def is_living(self, thread_id: int) -> bool:
        """False of a thread that has ended, and of a main one that others have outlived."""
        try:
            return self._stat(thread_id)[0] not in ENDED
        except ProcessGoneError:
            return False

    def own_id(self, thread_id: int) -> int:
        """The id of a thread inside the process's PID namespace: in a container it differs from the one
        outside."""
        if not self._is_in_other_namespace:
            return thread_id
        status = self._text(f"/proc/{self.pid}/task/{thread_id}/status")
        return int(status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1])

    @cached_property
    def _is_in_other_namespace(self) -> bool:
        return len(self.status().get("NSpid", "").split()) > 1

    # ---- reading -----------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        return Path("/proc", str(self.memory_id), name)

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of one of its files."""
        try:
            return os.open(self.path(name), flags | os.O_CLOEXEC)
        except OSError as error:
            raise self._error(error) from None

    def _read(self, name: str) -> str:
        return self._text(self.path(name))

    def _lines(self, name: str) -> list[str]:
        """The kernel escapes line feeds in names, and no other separators."""
        return self._read(name).split("\n")[:-1]

    def _text(self, path: str | Path) -> str:
        """As fast as possible: there may be thousands of threads."""
        try:
            with FileIO(path) as file:
                return file.read().decode(errors="replace")
        except OSError as error:
            raise self._error(error) from None

    def _stat(self, number: int) -> list[str]:
        """/proc/NUMBER/stat from the state on: the name before it may contain blanks and brackets."""
        return self._text(f"/proc/{number}/stat").rpartition(")")[2].split()

    def _living_thread(self) -> int | None:
        """The number of the oldest thread that still runs, where the main one has ended."""
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                if self.is_living(int(thread)):
                    return int(thread)
        return None

    def _error(self, error: OSError) -> Exception:
        return refused(self.pid) if isinstance(error, PermissionError) else gone(self.pid)


def all_processes() -> Iterator[Process]:
    """Every process, in the order of PIDs; without keepers, whose memory is another one's.  A process that
    the kernel hides (hidepid=1) has an empty name, and every other question of it raises."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(ProcessGoneError):
            try:
                process = Process(pid)
            except AccessRefusedError:
                process = Process(pid, 0)
                process.name = ""
            if process.name != KEEPER_NAME:
                yield process


def parse_mapping(line: str) -> Mapping:
    match = MAPS_LINE.match(line)
    if match is None:
        raise ValueError(f"not a line of /proc/PID/maps: {line!r}")
    start, end, permissions, offset, device, inode, path = match.groups()
    return Mapping(int(start, 16), int(end, 16), permissions, int(offset, 16), device, int(inode), path)


Resident = tuple[int, int, str, int]  # start, end, path and resident bytes of a mapping


def resident_of(smaps: str) -> list[Resident]:
    """Quicker than `smaps`."""
    found = SMAPS_RSS.findall(smaps)
    return [(int(start, 16), int(end, 16), path, kib(rss)) for start, end, path, rss in found]


def library_sums(mappings: list[Resident]) -> dict[str, int]:
    """Resident bytes of each library, by its name without folder."""
    sums: dict[str, int] = {}
    for _, _, path, rss_bytes in mappings:
        if path.startswith("/") and ".so" in path:
            name = path.rpartition("/")[2]
            sums[name] = sums.get(name, 0) + rss_bytes
    return sums


def machine_memory() -> dict[str, int]:
    """/proc/meminfo, in bytes."""
    return _figures(Path("/proc/meminfo").read_text().splitlines())


def _figures(lines: list[str]) -> dict[str, int]:
    pairs = (line.partition(":") for line in lines)
    return {name: kib(value) for name, _, value in pairs if value.endswith(" kB")}


def kib(text: str | None) -> int:
    """ "  123 kB" in bytes; 0 if the kernel has no such line."""
    return int(text.split()[0]) * 1024 if text else 0
