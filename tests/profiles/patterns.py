"""Runs programs/patterns.c under a profile, and holds what the samples say against what the program did."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from switch.outside import Outside, outside, probability
from switch.spoken import spoken_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

SITES = ("lasting", "temporary", "third")
END_S = 120.0


@dataclass(frozen=True)
class Pattern:
    """`period` is R in bytes, of the rounds in turns; each round is the pattern `times` times."""

    name: str
    what: str
    times: int
    period: tuple[int, ...] = (64,)
    gives_every: int = 1  # rounds
    forks: bool = False


# The twelve, and one that is twice the first with more samples than the table holds.
PATTERNS = (
    Pattern("temporary first", "a block is made and freed, then one of its class that lasts", 16000),
    Pattern("lasting first", "the one that lasts comes first", 16000),
    Pattern("held between", "the one that lasts is made while the other lives", 16000),
    Pattern("small chains", "realloc from 16 bytes up to 16 KiB, by halves; each fourth lasts", 4000, (512,)),
    Pattern("large chains", "realloc from 24 KiB up to 2 MiB, where it is or not", 250, (64 << 10,)),
    Pattern("around the period", "seven sizes from R/8 to 8 R, three sites", 8000, (4096,)),
    Pattern("resonance", "turns of exactly R bytes, with a block of each of two other sites", 8000, (1024,)),
    Pattern("tiny beside huge", "65,536 blocks of 16 bytes for each of a mebibyte", 20, (1024,)),
    Pattern("bursts", "quiet, then a burst of another site; R changes sixteenfold between the rounds",
            16000, (256, 4096, 1024), gives_every=3),
    Pattern("freed by others", "one thread makes, others only free", 16000),
    Pattern("threads that end", "each makes 2,400 bytes, less than R, and ends", 4000, (4096,)),
    Pattern("forks", "children and their children go on with the parent's stream", 8000, forks=True),
    Pattern("temporary first", "the same with more samples than the table holds", 300_000),
)  # fmt: skip


@dataclass
class Sums:
    """One site's bytes and blocks, with their variances; that of the blocks only where samples are known."""

    bytes: float = 0.0
    blocks: float = 0.0
    variance: float = 0.0
    of_blocks: float | None = None

    def __iadd__(self, other: Sums) -> Sums:
        self.bytes, self.blocks = self.bytes + other.bytes, self.blocks + other.blocks
        self.variance += other.variance
        if other.of_blocks is not None:
            self.of_blocks = (self.of_blocks or 0.0) + other.of_blocks
        return self


@dataclass
class Row:
    """One site of a pattern: the true figures and the estimated ones."""

    true: Sums = field(default_factory=Sums)
    found: Sums = field(default_factory=Sums)

    def biases(self) -> Iterator[tuple[float, float]]:
        """Each with its standard error: of the bytes, and of the blocks."""
        yield self.found.bytes / self.true.bytes - 1, math.sqrt(self.found.variance) / self.true.bytes
        if self.found.of_blocks is not None:
            error = math.sqrt(self.found.of_blocks) / self.true.blocks
            yield self.found.blocks / self.true.blocks - 1, error


@dataclass
class Found:
    """Figures of all rounds: live blocks summed over the rounds; made and freed ones at the end."""

    live: dict[str, Row] = field(default_factory=lambda: {name: Row() for name in SITES})
    made: dict[str, Row] = field(default_factory=lambda: {name: Row() for name in SITES})
    samples: int = 0
    halvings: int = 0

    def rows(self) -> Iterator[tuple[str, Row]]:
        for kind, rows in (("live", self.live), ("made", self.made)):
            for name, row in rows.items():
                if row.true.bytes:
                    yield f"{kind} {name}", row


@dataclass
class Truth:
    pid: int
    live: dict[str, Sums]
    made: dict[str, Sums]

    @classmethod
    def of(cls, line: str) -> Truth:
        pid, *numbers = map(int, line.split())
        live, made = {}, {}
        for at, name in enumerate(SITES):
            live_blocks, live_bytes, made_blocks, made_bytes = numbers[4 * at : 4 * at + 4]
            live[name] = Sums(live_bytes, live_blocks)
            made[name] = Sums(made_bytes, made_blocks)
        return cls(pid, live, made)


class Program:
    """One process of it, and where its sites are."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.ranges: dict[str, tuple[int, int]] = {}
        while (line := self._line()) != "ready":
            name, begin, end = line.split()
            self.ranges[name] = int(begin, 16), int(end, 16)

    def say(self, line: str) -> Truth:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return Truth.of(self._line())

    def end(self) -> None:
        _, stderr = self._process.communicate("end\n", timeout=END_S)
        assert (self._process.returncode, stderr) == (0, "")

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, self._process.stderr and self._process.stderr.read()
        return line

    # ---- what the tables say --------------------------------------------------------------------------

    def live(self, process: Outside, names: list[str]) -> dict[str, Sums]:
        _, doubled, samples = process.samples()
        p = probability(samples) / doubled
        found = {name: Sums() for name in SITES}
        of_site = np.array([*names, ""])[np.minimum(samples["site"], len(names))]
        for name in SITES:
            mine = of_site == name
            blocks, missed = 1 / p[mine], 1 - p[mine]
            weight = samples["block_bytes"][mine] * blocks
            sums = weight, blocks, weight**2 * missed, blocks**2 * missed
            found[name] = Sums(*(float(one.sum()) for one in sums))
        return found

    def made(self, process: Outside, names: list[str], which: str = "allocated") -> dict[str, Sums]:
        rows: NDArray[Any] = process.sites()[which]
        of_site = np.array(names)[: len(rows)]
        found = {}
        for name in SITES:
            mine = rows[: len(of_site)][of_site == name]
            found[name] = Sums(*(float(mine[what].sum()) for what in ("bytes", "blocks", "variance")))
        return found

    def names(self, process: Outside) -> list[str]:
        """The function that each site of the tables is in; "" for others."""

        def name_of(frames: list[int]) -> str:
            for frame in frames[:8]:
                for name, (begin, end) in self.ranges.items():
                    if begin < frame <= end:
                        return name
            return ""

        return [name_of(process.frames(row)) if row["frame_count"] else "" for row in process.sites()]


@contextmanager
def running(program: Path, library: Path, pattern: Pattern) -> Iterator[Program]:
    with spoken_to([program, pattern.name], library, {"HAKMEM_PROFILE": str(pattern.period[0])}) as process:
        yield Program(process)


def run(program: Path, library: Path, pattern: Pattern, samples: int) -> Found:
    """Rounds until this number of samples is taken."""
    found = Found()
    with running(program, library, pattern) as child:
        if pattern.forks:
            _run_forks(child, pattern, samples, found)
        else:
            with outside(child.say("round 0").pid) as process:
                _run_rounds(child, process, pattern, samples, found)
        child.end()
    return found


def _add_live(found: Found, truth: Truth, live: dict[str, Sums]) -> None:
    for name, row in found.live.items():
        row.true += truth.live[name]
        row.found += live[name]


def _add_made(found: Found, truth: Truth, made: dict[str, Sums]) -> None:
    for name, row in found.made.items():
        row.true += truth.made[name]
        row.found += made[name]


def _run_rounds(child: Program, process: Outside, pattern: Pattern, samples: int, found: Found) -> None:
    number = 0
    while int(process.state["samples"]) < samples or number % pattern.gives_every:
        if len(pattern.period) > 1:
            process.write("profile_control", "period_bytes", pattern.period[number % len(pattern.period)])
            process.publish()
            process.poke(process.heap_addresses())
        truth = child.say(f"round {pattern.times}")
        names = child.names(process)
        _add_live(found, truth, child.live(process, names))
        number += 1
        if number % pattern.gives_every == 0:
            truth = child.say("give")
    names = child.names(process)
    _add_made(found, truth, child.made(process, names))
    state = process.state
    found.samples, found.halvings = int(state["samples"]), int(state["halvings"])
    assert not int(state["lost_samples"]), "no sample is lost"
    if not found.halvings:
        _all_are_freed(child.made(process, names), child.made(process, names, "freed"))


def _all_are_freed(made: dict[str, Sums], freed: dict[str, Sums]) -> None:
    """Each sample goes once, with its own weight."""
    for name in SITES:
        assert math.isclose(made[name].blocks, freed[name].blocks, rel_tol=1e-9, abs_tol=1e-3), name
        assert math.isclose(made[name].bytes, freed[name].bytes, rel_tol=1e-9, abs_tol=1e-3), name


def _run_forks(child: Program, pattern: Pattern, samples: int, found: Found) -> None:
    """Siblings, each with a child of its own; the parent has made nothing, so nothing is counted twice."""
    while found.samples < samples:
        child.say("fork")
        with outside(child.say(f"round {pattern.times}").pid) as process:
            truth = child.say("round 0")
            names = child.names(process)
            _add_live(found, truth, child.live(process, names))
        child.say("fork")
        truth = child.say(f"round {pattern.times}")
        with outside(truth.pid) as process:
            names = child.names(process)
            _add_live(found, truth, child.live(process, names))
            _add_made(found, truth, child.made(process, names))
            found.samples += int(process.state["samples"])
        child.say("end")
        child.say("end")
