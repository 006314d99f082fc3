"""All workloads, and choosing among them by name."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

from .cases import CASES
from .real_suite import REAL_SUITE
from .suite import SUITE
from .workload import Workload

ALL: tuple[Workload, ...] = (*SUITE, *CASES, *REAL_SUITE)
NAMES = frozenset(each.name for each in ALL)


def matches(name: str, pattern: str) -> bool:
    """`larson` selects every larson-…, `case` every case, `real` every real program; shell patterns, too.
    A whole name selects no other: real-perl is not real-perl-texts."""
    return fnmatch(name, pattern) or (pattern not in NAMES and fnmatch(name, f"{pattern}-*"))


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """True without a pattern."""
    return not patterns or any(matches(name, pattern) for pattern in patterns)


def select(patterns: Sequence[str], quick: bool = False) -> tuple[list[Workload], list[str]]:
    """The workloads that any of the patterns matches, and the patterns that match nothing.  Without a pattern
    all, but in a quick campaign no cases: they mostly sleep, and would take the time of all others."""
    if not patterns:
        return [each for each in ALL if not (quick and each.is_case)], []
    chosen = [each for each in ALL if any(matches(each.name, pattern) for pattern in patterns)]
    unknown = [pattern for pattern in patterns if not any(matches(each.name, pattern) for each in ALL)]
    return chosen, unknown
