"""How long a site's blocks live: from the samples that were freed, and the ages of those that were not.

A live sample says only that its block lives longer than its age: it is censored.  Both together give a life
table (the actuarial estimate of E. Kaplan and P. Meier, 1958), with the rows that the sampler counts in:

    row i      lived 2^(i-1) ms up to 2^i ms, the first less than 1 ms, the last without an end
    at risk    those that reached the row, less half of those whose age ends in it
    share      of all that live past the row: Π (1 - freed / at risk)
    interval   95 %, M. Greenwood's variance by log(-log share); of 0 and 1, as for coins

Blocks of a site are often freed together: then the truth varies more than these intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from hakmem.profile.estimate import TAIL, Z_95
from hakmem.profile.model import Lifetimes, Profile, StackKey, whole_stack

ROWS = 24  # of a library that counts none
FAR = 2  # times


@dataclass(frozen=True)
class Point:
    """The share of blocks that live at least so long."""

    age_ms: int
    share: float
    low: float
    high: float
    reached: int  # the sampled blocks that did


@dataclass(frozen=True)
class Survival:
    freed: Lifetimes
    living: Lifetimes  # the same rows, by age
    ages_ms: tuple[int, ...]  # of the living ones, sorted

    @property
    def freed_samples(self) -> int:
        return sum(self.freed)

    @property
    def oldest_ms(self) -> int:
        return self.ages_ms[-1] if self.ages_ms else 0

    @property
    def last_freed_ms(self) -> int | None:
        """Nothing that was older has ever been freed; 0: nothing at all; None: that cannot be said."""
        rows = [row for row, count in enumerate(self.freed) if count]
        if not rows:
            return 0
        return None if rows[-1] == len(self.freed) - 1 else bounds_ms(len(self.freed))[rows[-1] + 1]

    @property
    def older(self) -> int:
        """The live samples that are far older than any that was freed.

        Twice as old: a collector that comes by every few seconds has freed nothing older either until it
        comes again."""
        limit = self.last_freed_ms
        return 0 if limit is None else sum(1 for age in self.ages_ms if age >= FAR * limit)

    def points(self) -> list[Point]:
        """At the end of each row that some block has reached."""
        found, share, summed = [], 1.0, 0.0
        at_risk = sum(self.freed) + sum(self.living)
        ends = bounds_ms(len(self.freed))
        for row, (freed, living) in enumerate(zip(self.freed[:-1], self.living[:-1], strict=True)):
            exposed, at_risk = at_risk - living / 2, at_risk - freed - living
            if freed:
                share *= 1 - freed / exposed
                summed += freed / (exposed * max(exposed - freed, 1e-12))
            if not at_risk and not freed:
                break
            seen = at_risk if share >= 1 else exposed
            found.append(Point(ends[row + 1], share, *_interval(share, summed, seen), at_risk))
        return found

    def at(self, age_ms: int) -> Point | None:
        """The last point that is not beyond an age; None if no block has been seen so long."""
        if age_ms > max(self.oldest_ms, self.last_freed_ms or 0):
            return None
        return next((point for point in reversed(self.points()) if point.age_ms <= age_ms), None)


def bounds_ms(rows: int) -> list[int]:
    """Where each row begins."""
    return [0, *(1 << row for row in range(rows - 1))]


def row_of(age_ms: int, rows: int) -> int:
    return min(age_ms.bit_length(), rows - 1)


def survival(profile: Profile, key: StackKey = whole_stack) -> dict[Hashable, Survival]:
    rows = max(map(len, profile.lifetimes.values()), default=ROWS)
    freed: dict[Hashable, list[int]] = defaultdict(lambda: [0] * rows)
    ages: dict[Hashable, list[int]] = defaultdict(list)
    for stack, counts in profile.lifetimes.items():
        freed[key(stack)] = [a + b for a, b in zip(freed[key(stack)], counts, strict=True)]
    for one in profile.samples:
        if one.age_ms is not None:
            ages[key(one.stack)].append(one.age_ms)
    return {name: _survival(freed[name], sorted(ages[name])) for name in freed.keys() | ages.keys()}


def _survival(freed: Iterable[int], ages: list[int]) -> Survival:
    counts = tuple(freed)
    living = [0] * len(counts)
    for age in ages:
        living[row_of(age, len(counts))] += 1
    return Survival(counts, tuple(living), tuple(ages))


def _interval(share: float, summed: float, seen: float) -> tuple[float, float]:
    coins = 1 - TAIL ** (1 / max(seen, 1.0))
    if share >= 1:
        return 1 - coins, 1.0
    if share <= 0:
        return 0.0, coins
    half = Z_95 * math.sqrt(summed) / abs(math.log(share))
    return share ** math.exp(half), share ** math.exp(-half)
