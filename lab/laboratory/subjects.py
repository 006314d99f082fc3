"""The subjects of a run: the experiments, and hakmem, glibc and mimalloc as references on the same load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.allocators import find_allocators

EXPERIMENTS = (
    "sharded-mutex",
    "cas-walk",
    "cas-singles",
    "adopt-at-once",
    "threshold-4",
    "threshold-2",
    "reenqueue",
    "adopt-announced",
    "thread-list",
    "magazine-64",
    "global-cache",
    "route-s",
    "route-p",
)
REFERENCES = ("hakmem", "glibc", "mimalloc")


@dataclass(frozen=True)
class Subject:
    """A row of the tables."""

    name: str
    strategy: str
    library: Path | None = None  # preloaded

    @property
    def is_reference(self) -> bool:
        """Not an experiment, but an allocator that serves the load's malloc."""
        return self.strategy == "malloc"


def find_subjects() -> list[Subject]:
    """All experiments, then the references that this machine has."""
    found, _missing = find_allocators({}, wanted=REFERENCES)
    references = [Subject(each.name, "malloc", each.library) for each in found if each.name in REFERENCES]
    return [*(Subject(name, name) for name in EXPERIMENTS), *references]
