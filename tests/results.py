"""How a program ended that a test has run."""

from collections.abc import Callable
from dataclasses import dataclass, field

from preload import Report, served


@dataclass(frozen=True)
class Result:
    """How a program ended.  `returncode` is -N after death by signal N; `stats` holds one report for
    each process that ended normally on hakmem."""

    returncode: int
    stdout: str
    stderr: str
    stats: list[Report] = field(default_factory=list)

    @property
    def served(self) -> int:
        """The number of processes whose blocks came from hakmem, by hakmem's own counters."""
        return sum(1 for report in self.stats if served(report) > 0)


# A fixture that runs a program.
Run = Callable[..., Result]
