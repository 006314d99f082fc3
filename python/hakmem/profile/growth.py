"""What grew in one process from one reading of its samples to the next: by site, with intervals.

A sample that is live in both readings is the same block: it says nothing of the change, and adds nothing to
its error.  So the error is that of what came and what went, far less than between two independent profiles:

    grown = Σ w of what came - Σ w of what went          variance = Σ w²(1 - p) of both

Blocks from before the first profile belong to no site.  Where such a block is freed for each new one, a site
seems to grow that only replaces.  But the growth of each class is counted exactly, so part of it is certain:

    certain = Σ over classes of min(grown, what the class grew - what its other sites grew)"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from hakmem.profile.estimate import (
    Z_95,
    Z_SIGNIFICANT,
    Estimate,
    difference_interval,
    difference_z,
    total,
    unseen_beside,
)
from hakmem.profile.model import ClassCount, Profile, Sample, Stack
from hakmem.profile.sites import sums_of

StackKey = Callable[[Stack], Hashable]  # groups the stacks of one site

CERTAIN_SHARE = 0.1  # of what a site grew; counts of a busy process are off by what caches hold
STEADY_SHARE = 0.25  # of what the larger half of the time brought


@dataclass
class Growth:
    """One site."""

    key: Hashable
    stack: Stack  # of its largest sample
    came: Estimate = field(default_factory=Estimate)  # bytes that are live now, and were not
    went: Estimate = field(default_factory=Estimate)
    blocks_came: Estimate = field(default_factory=Estimate)
    blocks_went: Estimate = field(default_factory=Estimate)
    certain: Estimate | None = None  # of the bytes; None: the exact counts are not known
    halves: tuple[float, float] = (0.0, 0.0)  # bytes that came in the first and the second half, and stayed

    @property
    def bytes(self) -> float:
        return self.came.value - self.went.value

    @property
    def blocks(self) -> float:
        return self.blocks_came.value - self.blocks_went.value

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 %, of the bytes."""
        return difference_interval(self.went, self.came)

    @cached_property
    def z(self) -> float:
        return difference_z(self.went, self.came)

    @property
    def is_significant(self) -> bool:
        return self.z > Z_SIGNIFICANT

    @property
    def is_certain(self) -> bool:
        """It is not blocks from before that are replaced."""
        if self.certain is None:
            return False
        low = self.certain.value - Z_95 * self.certain.error
        return low > 0 and self.certain.value >= CERTAIN_SHARE * self.bytes

    @property
    def is_steady(self) -> bool:
        """Both halves of the time brought some: it is not something that was loaded once."""
        return min(self.halves) >= STEADY_SHARE * max(self.halves) > 0


@dataclass(frozen=True)
class Grown:
    """All sites that changed, by how much they grew."""

    sites: list[Growth]
    seconds: float
    live_bytes: int | None  # what the whole process grew, exactly; None: not known

    def rate(self, value: float) -> float:
        """A second."""
        return value / self.seconds if self.seconds > 0 else 0.0


def whole_stack(stack: Stack) -> Hashable:
    """Each stack is a site of its own."""
    return stack


def growth(before: Profile | None, after: Profile, key: StackKey = whole_stack) -> Grown:
    """From one reading to another; without the first since the profile began."""
    came, went = _changes(before, after)
    seconds = _seconds(before, after)
    sites: dict[Hashable, Growth] = {}
    parts: dict[Hashable, dict[int, tuple[list[Sample], list[Sample]]]] = {}
    for place, samples in enumerate((came, went)):
        for one in samples:
            name = key(one.stack)
            by_class = parts.setdefault(name, defaultdict(lambda: ([], [])))
            by_class[one.class_number][place].append(one)
    grown_classes = _class_growth(before, after)
    sums = _class_sums(parts.values())
    for name, by_class in parts.items():
        site = sites[name] = _site(name, by_class, seconds)
        if grown_classes is not None:
            site.certain = total(
                _certain(_net(*pair), sums[number], grown_classes.get(number, 0))
                for number, pair in by_class.items()
            )
    ordered = sorted(sites.values(), key=lambda site: -site.bytes)
    whole = None if grown_classes is None else sum(grown_classes.values())
    return Grown(ordered, seconds, whole)


def _changes(before: Profile | None, after: Profile) -> tuple[list[Sample], list[Sample]]:
    """The samples that came, and those that went.

    One of the same weight at the same address counts as the same: if it is another, nothing has changed
    either."""
    if before is None:
        window_ms = after.header.seconds * 1000
        return [one for one in after.samples if one.age_ms is not None and one.age_ms <= window_ms], []
    old, new = _by_identity(before), _by_identity(after)
    return (
        [one for name, one in new.items() if name not in old],
        [one for name, one in old.items() if name not in new],
    )


def _by_identity(profile: Profile) -> dict[tuple[int, Stack, float], Sample]:
    return {
        (address, one.stack, one.weight_bytes): one
        for address, one in zip(profile.blocks, profile.samples, strict=True)
    }


def _seconds(before: Profile | None, after: Profile) -> float:
    """What was switched on after the first reading counts from then on."""
    since_began = after.header.seconds
    if before is None:
        return since_began
    return max(0.0, min(since_began, after.header.ended_s - before.header.ended_s))


def _class_growth(before: Profile | None, after: Profile) -> dict[int, int] | None:
    """What each class grew; None if it was not counted at the beginning."""
    first = {count.class_number: _first(count, before) for count in after.classes}
    if not first or any(value is None for value in first.values()):
        return None
    return {
        count.class_number: count.live_bytes - (first[count.class_number] or 0) for count in after.classes
    }


def _first(count: ClassCount, before: Profile | None) -> int | None:
    """Its live bytes at the first reading: counted there, or when the profile was switched on."""
    if before is None:
        return None
    counted = {one.class_number: one.live_bytes for one in before.classes}
    return counted.get(count.class_number, 0) if before.classes else count.before_bytes


def _class_sums(parts: Iterable[dict[int, tuple[list[Sample], list[Sample]]]]) -> dict[int, Estimate]:
    """What the sites of each class grew together."""
    found: dict[int, Estimate] = defaultdict(Estimate)
    for by_class in parts:
        for number, pair in by_class.items():
            found[number] += _net(*pair)
    return found


def _net(came: list[Sample], went: list[Sample]) -> Estimate:
    return sums_of(came)[0] - sums_of(went)[0]


def _certain(own: Estimate, whole: Estimate, class_grew: int) -> Estimate:
    """What is left of the class's growth for this site: no more than its samples say."""
    others = Estimate(whole.value - own.value, max(0.0, whole.variance - own.variance))
    left = class_grew - others.value
    if left >= own.value:
        return own
    unseen = unseen_beside(own) if own.samples >= whole.samples else 0.0
    return Estimate(left, others.variance, own.samples, unseen=unseen**2)


def _site(name: Hashable, by_class: dict[int, tuple[list[Sample], list[Sample]]], seconds: float) -> Growth:
    came = [one for pair in by_class.values() for one in pair[0]]
    went = [one for pair in by_class.values() for one in pair[1]]
    site = Growth(name, max((*came, *went), key=lambda one: one.weight_bytes).stack)
    site.came, site.blocks_came, _ = sums_of(came)
    site.went, site.blocks_went, _ = sums_of(went)
    late = sum(one.weight_bytes for one in came if (one.age_ms or 0) * 2 < seconds * 1000)
    site.halves = (site.came.value - late, late)
    return site
