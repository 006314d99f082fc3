"""Growth in one process from one reading of its samples to the next: by site, with intervals.

A sample that is live in both readings is the same block: it says nothing of the change, and adds nothing to
its error.  So the error is that of what came and what went, far less than between two independent profiles.
In one process such a sample has the same address in both; in files, whose rows have ages, it is older than
the time between them:

    grown = Σ w of what came - Σ w of what went          variance = Σ w²(1 - p) of both

The live blocks of each class are counted exactly.  So what came to its sites is scaled into these bounds, and
the error that they have in common is gone:

    the class's growth  ≤  additions to all of its sites  ≤  live bytes

Blocks from before the first profile belong to no site.  Where such a block is freed for each new one, a site
seems to grow that only replaces.  But part of what it grew is certain:

    certain = Σ over classes of min(grown, what the class grew - what its other sites grew)"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from hakmem.profile.estimate import (
    Z_95,
    Z_SIGNIFICANT,
    Estimate,
    difference_interval,
    difference_z,
    unseen_beside,
)
from hakmem.profile.model import Mode, Profile, Sample, Stack, StackKey, whole_stack
from hakmem.profile.sites import Counted, sums_of

_ByClass = dict[int, tuple[list[Sample], list[Sample]]]  # a site's new samples, and its ended ones

CERTAIN_SHARE = 0.1  # of what a site grew; counts of a busy process are off by what caches hold
ROUNDING = 1e-9  # of sums of doubles
SAME_BEGIN_S = 2.0  # profiles that began so near each other are one: clocks are set meanwhile
STEADY_SHARE = 0.25  # of what the larger half of the time brought


@dataclass
class Growth:
    key: Hashable
    stack: Stack  # of its largest sample
    came: Estimate = field(default_factory=Estimate)  # bytes that are live now, and were not
    went: Estimate = field(default_factory=Estimate)
    blocks_came: Estimate = field(default_factory=Estimate)
    blocks_went: Estimate = field(default_factory=Estimate)
    certain: Estimate | None = None  # of the bytes; None: the exact counts are not known
    halves: tuple[float, float] = (0.0, 0.0)  # bytes that came in the first and the second half, and stayed
    live_bytes: float = math.inf  # of its classes, exactly

    @property
    def bytes(self) -> float:
        return self.came.value - self.went.value

    @property
    def blocks(self) -> float:
        return self.blocks_came.value - self.blocks_went.value

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 %, of the bytes."""
        low, high = difference_interval(self.went, self.came)
        return min(low, self.live_bytes), min(high, self.live_bytes)

    @cached_property
    def z(self) -> float:
        return difference_z(self.went, self.came)

    @property
    def is_significant(self) -> bool:
        """By its own samples, or because no other site can have grown its classes."""
        is_left = self.certain is not None and difference_z(Estimate(), self.certain) > Z_SIGNIFICANT
        return self.z > Z_SIGNIFICANT or is_left

    @property
    def is_certain(self) -> bool:
        """The growth does not come from replaced older blocks."""
        if self.certain is None:
            return False
        low = self.certain.value - Z_95 * self.certain.error
        return low > 0 and self.certain.value >= CERTAIN_SHARE * self.bytes

    @property
    def is_steady(self) -> bool:
        """It grew in both halves of the time: nothing was just loaded once."""
        return min(self.halves) >= STEADY_SHARE * max(self.halves) > 0


@dataclass(frozen=True)
class Grown:
    sites: list[Growth]
    seconds: float
    live_bytes: int | None  # exact growth of the whole process; None: not known
    risen_bytes: int = 0  # of this, what the classes that grew did

    def rate(self, value: float) -> float:
        """A second."""
        return value / self.seconds if self.seconds > 0 else 0.0


def growth(before: Profile | None, after: Profile, key: StackKey = whole_stack) -> Grown:
    """From one reading to another; without the first since the profile began."""
    came, went = _changes(before, after, key)
    seconds = _seconds(before, after)
    parts: dict[Hashable, _ByClass] = {}
    for place, samples in enumerate((came, went)):
        for one in samples:
            name = key(one.stack)
            by_class = parts.setdefault(name, defaultdict(lambda: ([], [])))
            by_class[one.class_number][place].append(one)
    grown_classes = _class_growth(before, after)
    classes = _classes(came, went, after, grown_classes or {}, _sampled_share(before, after))
    ordered = [_site(name, by_class, classes, seconds) for name, by_class in parts.items()]
    if grown_classes is None:
        for site in ordered:
            site.certain = None
        grown_classes = {}
    ordered.sort(key=lambda site: -site.bytes)
    rises = [grew for grew in grown_classes.values() if grew > 0]
    return Grown(ordered, seconds, sum(grown_classes.values()) if grown_classes else None, sum(rises))


def are_of_one_profile(before: Profile, after: Profile) -> bool:
    """Are these two readings of one profile, whose live samples can be told apart by their ages?"""
    old, new = before.header, after.header
    is_live = Mode.ALLOCATED not in (old.mode, new.mode)
    is_same = old.pid == new.pid != 0 and old.merged_samples == new.merged_samples
    has_begun_once = min(old.began_s, new.began_s) > 0 and abs(old.began_s - new.began_s) < SAME_BEGIN_S
    has_ages = all(one.age_ms is not None for profile in (before, after) for one in profile.samples)
    return is_live and is_same and has_begun_once and has_ages


def _changes(before: Profile | None, after: Profile, key: StackKey) -> tuple[list[Sample], list[Sample]]:
    """The samples that came, and those that went.

    One of the same weight at the same address counts as the same: if it is another, nothing has changed
    either."""
    if before is None:
        window_ms = after.header.seconds * 1000
        return [one for one in after.samples if one.age_ms is not None and one.age_ms <= window_ms], []
    if len(before.blocks) != len(before.samples) or len(after.blocks) != len(after.samples):
        return _changes_by_age(before, after, key)
    old, new = _by_identity(before), _by_identity(after)
    return (
        [one for name, one in new.items() if name not in old],
        [one for name, one in old.items() if name not in new],
    )


def _changes_by_age(before: Profile, after: Profile, key: StackKey) -> tuple[list[Sample], list[Sample]]:
    """For profiles without addresses: samples younger than the time between the two came, and of a site's
    samples in a class as many went as are missing among the older ones.

    By the number of samples: files have weights that are scaled to the counts of their own moment."""
    between_ms = (after.header.ended_s - before.header.ended_s) * 1000
    came, stayed = list[Sample](), Counter[tuple[Hashable, int]]()
    for one in after.samples:
        count = _younger(one, between_ms)
        stayed[key(one.stack), one.class_number] += one.samples - count
        came += [_part(one, count)] * (count > 0)
    held = Counter[tuple[Hashable, int]]()
    for one in before.samples:
        held[key(one.stack), one.class_number] += one.samples
    went = list[Sample]()
    for one in before.samples:
        name = key(one.stack), one.class_number
        count = min(one.samples, held[name] - stayed[name])
        held[name] -= max(0, count)
        went += [_part(one, count)] * (count > 0)
    return came, went


def _younger(one: Sample, age_ms: float) -> int:
    """How many of its samples are; they are taken to be spread evenly over their ages."""
    low = one.age_ms or 0
    high = max(low, one.age_max_ms or 0)
    share = (age_ms - low) / (high - low) if high > low else float(low < age_ms)
    return round(min(max(share, 0.0), 1.0) * one.samples)


def _part(one: Sample, count: int) -> Sample:
    share = count / one.samples
    return replace(
        one,
        samples=count,
        weight_bytes=one.weight_bytes * share,
        weight_blocks=one.weight_blocks * share,
    )


def _by_identity(profile: Profile) -> dict[tuple[int, Stack, float], Sample]:
    return {
        (address, one.stack, one.weight_bytes): one
        for address, one in zip(profile.blocks, profile.samples, strict=True)
    }


def _seconds(before: Profile | None, after: Profile) -> float:
    """A profile switched on after the first reading counts from then on."""
    since_began = after.header.seconds
    if before is None:
        return since_began
    return max(0.0, min(since_began, after.header.ended_s - before.header.ended_s))


def _sampled_share(before: Profile | None, after: Profile) -> float:
    """The sampled part of the classes' growth time: they are counted shortly before the profile goes on."""
    header = after.header
    if before is None or before.classes or not header.counted_s:
        return 1.0
    return min(1.0, header.seconds / max(header.ended_s - header.counted_s, header.seconds, 1e-3))


def _class_growth(before: Profile | None, after: Profile) -> dict[int, int] | None:
    """The growth of each class; None if it was not counted at the beginning."""
    if before is None or not after.classes:
        return None
    first = {one.class_number: one.live_bytes for one in before.classes}
    if not first:  # they were counted when the profile was switched on
        first = {one.class_number: one.before_bytes for one in after.classes}
    return {one.class_number: one.live_bytes - first.get(one.class_number, 0) for one in after.classes}


@dataclass(frozen=True)
class _Class:
    """All sites of one class together."""

    came: Counted  # scaled into the bounds, if it is not within: its parts' errors are each other's then
    went: Estimate
    grew: int
    live_bytes: float


def _classes(
    came: list[Sample], went: list[Sample], after: Profile, grown: dict[int, int], sampled_share: float
) -> dict[int, _Class]:
    came_of, went_of = (_of_classes(samples) for samples in (came, went))
    live = {count.class_number: float(count.live_bytes) for count in after.classes}
    found = {}
    for number in came_of.keys() | went_of.keys():
        sampled, grew = came_of[number], grown.get(number, 0)
        most = live.get(number, 0.0) if live else math.inf
        exact = min(max(sampled.value, grew * sampled_share), most) if sampled.samples else 0.0
        counted = Counted(sampled, exact if exact != sampled.value else None, True)
        found[number] = _Class(counted, went_of[number], grew, most)
    return found


def _of_classes(samples: Iterable[Sample]) -> dict[int, Estimate]:
    parts: dict[int, list[Sample]] = defaultdict(list)
    for one in samples:
        parts[one.class_number].append(one)
    return defaultdict(Estimate, {number: sums_of(part)[0] for number, part in parts.items()})


def _certain(own: Estimate, one: _Class) -> Estimate:
    """The rest of the class's growth for this site: no more than its samples say."""
    whole = one.came.scaled(one.came.sampled) - one.went
    left = one.grew - (whole.value - own.value)
    if left >= own.value * (1 - ROUNDING):
        return own
    if one.came.exact is not None:  # a share's error tells what others may have unseen, too
        return Estimate(left, own.variance, own.samples, unseen=own.unseen)
    variance = max(0.0, whole.variance - own.variance)
    unseen = unseen_beside(own) if own.samples >= whole.samples else 0.0
    return Estimate(left, variance, own.samples, unseen=unseen**2)


def _site(name: Hashable, by_class: _ByClass, classes: dict[int, _Class], seconds: float) -> Growth:
    came = [one for pair in by_class.values() for one in pair[0]]
    went = [one for pair in by_class.values() for one in pair[1]]
    site = Growth(name, max((*came, *went), key=lambda one: one.weight_bytes).stack)
    site.went, site.blocks_went, _ = sums_of(went)
    site.certain, site.live_bytes = Estimate(), 0.0
    for number, pair in by_class.items():
        one, (of_bytes, of_blocks, _) = classes[number], sums_of(pair[0])
        own = one.came.scaled(of_bytes)
        site.came += own
        site.blocks_came += of_blocks.times(one.came.factor)
        site.certain += _certain(own - sums_of(pair[1])[0], one)
        site.live_bytes += one.live_bytes if pair[0] else 0.0
    late = sum(one.weight_bytes for one in came if (one.age_ms or 0) * 2 < seconds * 1000)
    site.halves = (sum(one.weight_bytes for one in came) - late, late)
    return site
