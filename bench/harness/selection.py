"""All workloads, and choosing among them by name."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

from .cases import CASES
from .real_suite import REAL_SUITE
from .suite import SUITE
from .workload import Workload

ALL: tuple[Workload, ...] = (*SUITE, *CASES, *REAL_SUITE)


def matches(name: str, pattern: str) -> bool:
    """`larson` selects every larson-…, `case` every case, `real` every real program; shell patterns, too."""
    return fnmatch(name, pattern) or fnmatch(name, f"{pattern}-*")


def select(patterns: Sequence[str]) -> tuple[list[Workload], list[str]]:
    """The workloads that any of the patterns matches (all when there is none), and the patterns that
    match nothing."""
    if not patterns:
        return list(ALL), []
    chosen = [each for each in ALL if any(matches(each.name, pattern) for pattern in patterns)]
    unknown = [pattern for pattern in patterns if not any(matches(each.name, pattern) for each in ALL)]
    return chosen, unknown
