"""One run of build/debug/coherence, and what its lines and places are called."""

from __future__ import annotations

import subprocess
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.build import BuildError
from harness.execute import RunError
from harness.paths import REPOSITORY

PROGRAM = REPOSITORY / "build" / "debug" / "coherence"
TIMEOUT_SECONDS = 900
MANY = 16


def build() -> None:
    command = ["cmake", "--build", "--preset", "debug", "--target", "coherence"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{done.stdout}{done.stderr}\n(`make debug` prepares the folder)")


@dataclass(frozen=True)
class Line:
    """A line of the allocator's that several cores write; counts are of the measured part."""

    address: int
    in_socket: int
    across: int
    busy_ns: int
    writes: int
    writers: int
    is_of_a_thread: int
    place: int  # where it was last taken to be written

    @property
    def transfers(self) -> int:
        return self.in_socket + self.across


@dataclass(frozen=True)
class Run:
    threads: int
    operations: int
    warm_ns: int  # until the last thread had made as many calls as it was to make operations
    ns: int
    own: tuple[int, int]  # transfers of the allocator's lines, in a socket and across
    payload: tuple[int, int]
    payload_shared: int  # of lines that another block of the program was touched in before
    lines: list[Line]
    places: list[tuple[int, int]]  # instruction, transfers

    def per_1000(self, count: int) -> float:
        return 1000 * count / self.operations

    @property
    def roofline(self) -> float:
        """Operations a second that the busiest line allows."""
        return 1e9 * self.operations / max((line.busy_ns for line in self.lines), default=1)

    def process_wide(self) -> list[Line]:
        """Lines of variables, and others outside of threads' heaps that more than half of many threads write,
        if written more than once in 1,000 operations; the most written first."""
        writers = max(MANY, self.threads / 2)
        wide = [
            line
            for line in self.lines
            if self.per_1000(line.writes) > 1
            and (variable_at(line.address) or (not line.is_of_a_thread and line.writers > writers))
        ]
        return sorted(wide, key=lambda line: -line.writes)


def run(load: str, threads: int, operations: int) -> Run:
    """Raises RunError."""
    command = [str(PROGRAM), load, str(threads), str(operations)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{load}, {threads} threads: not finished after {TIMEOUT_SECONDS} s") from error
    if done.returncode:
        raise RunError(done.stderr.strip() or f"{load}, {threads} threads: exit status {done.returncode}")
    head, *rows = (line.split("\t") for line in done.stdout.splitlines())
    count, warm_ns, ns, near, far, payload_near, payload_far, shared = map(int, head[1:])
    bases = (16, 10, 10, 10, 10, 10, 10, 16)
    lines = [Line(*map(int, row[1:], bases)) for row in rows if row[0] == "line"]
    places = [(int(row[1], 16), int(row[2])) for row in rows if row[0] == "site"]
    places.sort(key=lambda place: -place[1])
    return Run(threads, count, warm_ns, ns, (near, far), (payload_near, payload_far), shared, lines, places)


@cache
def _variables() -> tuple[list[int], list[str]]:
    done = subprocess.run(["nm", "-n", PROGRAM], capture_output=True, text=True, check=True)
    rows = [row.split() for row in done.stdout.splitlines()]
    known = [(int(row[0], 16), row[2]) for row in rows if len(row) == 3]
    return [address for address, _ in known], [name for _, name in known]


def variable_at(address: int) -> str:
    """The variables whose memory the line has a part of; '' outside of the program's own."""
    addresses, names = _variables()
    if not addresses[0] <= address < addresses[-1]:
        return ""
    begin, end = bisect_right(addresses, address) - 1, bisect_right(addresses, address + 63)
    return ", ".join(dict.fromkeys(name.partition(".")[0] for name in names[begin:end]))


@cache
def source_at(place: int) -> str:
    """file:line function: text, of the innermost function that is not one of base/atomic.h."""
    command = ["addr2line", "-ife", str(PROGRAM), hex(place - 1)]  # it is where the call returns to
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    frames = [(rows[i], rows[i + 1].split(" ")[0]) for i in range(0, len(rows), 2)]
    function, where = next((f for f in frames if "base/atomic.h" not in f[1]), frames[0])
    path, _, number = where.rpartition(":")
    if not number.isdigit():
        return function
    text = Path(path).read_text().splitlines()[int(number) - 1].strip()
    return f"{Path(path).parent.name}/{Path(path).name}:{number} {function}: {text}"
