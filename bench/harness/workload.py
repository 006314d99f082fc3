"""The campaign's interface to a benchmark, be it one of bench/programs or a real program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from .allocators import Allocator
from .execute import Sample

KINDS = REAL, MADE_UP, CASE = "real programs", "made-up loads", "cases"


@dataclass(frozen=True)
class Length:
    """How long the runs are: the seconds of those that run for a time, and the size of all other work."""

    seconds: float
    quick: bool


class Workload(Protocol):
    """One row of the tables."""

    @property
    def name(self) -> str: ...

    @property
    def runs_max(self) -> int | None:
        """The most rounds that are worth their time."""

    @property
    def together(self) -> bool:
        """All allocators may run at the same time: no reported figure depends on the processor."""

    @property
    def alternates(self) -> bool:
        """A pair's two runs may share a processor: no threads whose meeting is measured, no wall time."""

    @property
    def is_real(self) -> bool:
        """A program as users run it, rather than one of bench/programs."""

    @property
    def is_case(self) -> bool:
        """A single situation chosen because allocators differ much in it: not part of the means of loads."""

    def command_text(self, length: Length) -> str:
        """The text shown as the command."""

    def missing(self) -> str:
        """Why it cannot run on this machine, or ''."""

    def prepare(self, length: Length) -> None:
        """Builds and writes what the runs need.  Raises BuildError."""

    def expected_seconds(self, length: Length) -> float:
        """About how long a run takes, to plan the campaign."""

    def prove(self, allocator: Allocator) -> None:
        """Shows in an untimed run that the allocator serves it, where timed runs do not show it.  Raises
        RunError when it does not."""

    def timed(self, allocator: Allocator, length: Length) -> Sample:
        """The numbers of one run.  Raises RunError."""

    def report(self, hakmem: Allocator, length: Length) -> dict[str, Any] | None:
        """hakmem's counters in an untimed run, where they tell something.  Raises RunError."""


def kind_of(workload: Workload) -> str:
    """One of KINDS."""
    return REAL if workload.is_real else CASE if workload.is_case else MADE_UP
