"""Sites: samples grouped by the allocating code, scaled to the exact counts, in a table that adds up.

A class whose blocks are counted exactly gives the sum that its samples are scaled to:

    allocated   the blocks that it handed out since the profile began
    live        its live blocks, less those from before the profile, of which only the number at its start
                is known: they may have been freed since.  So the samples' own sum stands, within those
                bounds; a program that is profiled from its start on has none, and its sum is exact.

The rest of the live bytes is a row of its own: from before the profile began; and where it cannot be from
before, of a class that has no sample yet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from hakmem.census.catalogue import SITES_BEFORE, SITES_UNSAMPLED
from hakmem.profile.estimate import Estimate, Sum, share_of, total
from hakmem.profile.model import ClassCount, Mode, Profile, Sample, Stack, StackKey, whole_stack

_weight = attrgetter("weight_bytes")


@dataclass
class Site:
    """The blocks that one site holds, or allocated."""

    key: Hashable
    stack: Stack  # of its largest sample
    bytes: Estimate = field(default_factory=Estimate)
    blocks: Estimate = field(default_factory=Estimate)
    rounding: Estimate = field(default_factory=Estimate)  # bytes that classes added to the requests
    samples: list[Sample] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return all(sample.is_complete for sample in self.samples)


@dataclass(frozen=True)
class Remainder:
    """An exact sum less the samples' part: its interval is the samples', mirrored."""

    value: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class SiteTable:
    """The sites, largest first, and the rows that make them add up to `total_bytes`."""

    sites: list[Site]
    sampled: Estimate  # the sum of the sites' bytes
    before: Remainder  # bytes live since before the profile began
    unsampled_bytes: float  # counted since it began, but in classes without a sample
    total_bytes: float
    is_exact: bool  # the total was counted, not estimated

    @property
    def rests(self) -> tuple[tuple[str, Remainder], ...]:
        """The bytes of no site, by what they are."""
        unsampled = Remainder(self.unsampled_bytes)
        return (SITES_BEFORE.label, self.before), (SITES_UNSAMPLED.label, unsampled)


@dataclass(frozen=True)
class Counted:
    """A figure of one class: the sum of its samples, and the exact one to scale it to; None: as it is."""

    sampled: Estimate
    exact: float | None = None
    is_certain: bool = False  # the exact figure is, and not a bound

    @property
    def factor(self) -> float:
        return 1.0 if self.exact is None or self.sampled.value <= 0 else self.exact / self.sampled.value

    def scaled(self, part: Estimate) -> Estimate:
        """The estimate for a part of the samples."""
        if self.exact is not None and self.sampled.value > 0 and self.is_certain:
            return share_of(part, self.sampled, self.exact)
        return part.times(self.factor)

    @property
    def whole(self) -> Estimate:
        if self.exact is not None and self.sampled.value > 0 and self.is_certain:
            return Estimate(self.exact, samples=self.sampled.samples)
        return self.scaled(self.sampled)


_Strata = dict[int, tuple[Counted, Counted]]  # bytes and blocks of each class


def site_table(profile: Profile, key: StackKey = whole_stack) -> SiteTable:
    """Its samples, as its mode wants them, grouped by `key`."""
    samples, is_allocated = profile.shown, profile.header.mode is Mode.ALLOCATED
    strata = _strata(samples, profile.classes, is_allocated)
    sites = list(_sites(samples, strata, key))
    sites.sort(key=lambda site: -site.bytes.value)
    sampled = total(of_bytes.whole for of_bytes, _ in strata.values() if of_bytes.sampled.samples)
    before, unsampled_bytes = Remainder(), 0.0
    if profile.classes:
        before, unsampled_bytes = _the_rest(profile.classes, strata, is_allocated)
    is_new = profile.header.mode is Mode.NEW
    if is_new:  # how much is older is an estimate: so is the rest
        before = Remainder()
    whole = sampled.value + before.value + unsampled_bytes
    return SiteTable(sites, sampled, before, unsampled_bytes, whole, bool(profile.classes) and not is_new)


def sums_of(samples: Iterable[Sample]) -> tuple[Estimate, Estimate, Estimate]:
    """Their bytes, blocks and rounding, unscaled."""
    of_bytes, of_blocks, rounding = Sum(), Sum(), Sum()
    for one in samples:
        of_bytes.add(one.weight_bytes, one.weight_blocks, one.samples)
        of_blocks.add(one.weight_blocks, one.weight_blocks, one.samples)
        rounding.add(one.rounding_weight, one.weight_blocks, one.samples)
    return of_bytes.estimate, of_blocks.estimate, rounding.estimate


def _sites(samples: Iterable[Sample], strata: _Strata, key: StackKey) -> Iterable[Site]:
    groups: dict[Hashable, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        groups[key(sample.stack)][sample.class_number].append(sample)
    for name, by_class in groups.items():
        together = [sample for part in by_class.values() for sample in part]
        site = Site(name, max(together, key=_weight).stack, samples=together)
        for number, part in by_class.items():
            all_bytes, all_blocks = strata[number]
            of_bytes, of_blocks, rounding = sums_of(part)
            site.bytes += all_bytes.scaled(of_bytes)
            site.blocks += all_blocks.scaled(of_blocks)
            site.rounding += rounding.times(all_bytes.factor)  # it has no exact sum of its own
        yield site


def _strata(samples: Iterable[Sample], classes: Iterable[ClassCount], is_allocated: bool) -> _Strata:
    parts: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        parts[sample.class_number].append(sample)
    counts = {count.class_number: count for count in classes}
    strata: _Strata = {}
    for number in parts.keys() | counts.keys():
        of_bytes, of_blocks, _ = sums_of(parts.get(number, []))
        count = counts.get(number)
        if count is None or (is_allocated and not count.allocated_blocks):
            strata[number] = Counted(of_bytes), Counted(of_blocks)
        elif is_allocated:
            sums = count.allocated_bytes, count.allocated_blocks
            strata[number] = Counted(of_bytes, sums[0], True), Counted(of_blocks, sums[1], True)
        else:
            size = _within(of_bytes.value, count.live_bytes - count.before_bytes, count.live_bytes)
            blocks = _within(of_blocks.value, count.live_blocks - count.before_blocks, count.live_blocks)
            is_whole = not count.before_bytes
            strata[number] = Counted(of_bytes, size, is_whole), Counted(of_blocks, blocks, is_whole)
    return strata


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _the_rest(classes: Iterable[ClassCount], strata: _Strata, is_allocated: bool) -> tuple[Remainder, float]:
    """Bytes from before the profile, and those of classes without a sample."""
    value = down = up = most = unsampled_bytes = 0.0
    for count in classes:
        of_bytes = strata[count.class_number][0]
        if is_allocated:
            unsampled_bytes += 0 if of_bytes.sampled.samples else count.allocated_bytes
            continue
        sampled = of_bytes.whole
        rest = max(0.0, count.live_bytes - sampled.value)
        old = min(rest, float(count.before_bytes))
        unsampled_bytes += 0 if of_bytes.sampled.samples else rest - old
        low, high = sampled.interval
        value, most = value + old, most + min(count.before_bytes, count.live_bytes)
        down, up = math.hypot(down, high - sampled.value), math.hypot(up, sampled.value - low)
    return Remainder(value, (max(0.0, value - down), min(most, value + up))), unsampled_bytes


def factors_of(
    samples: Iterable[Sample], classes: Iterable[ClassCount], is_allocated: bool
) -> dict[int, tuple[float, float]]:
    """By class, the factors of bytes and blocks that make them add up to the exact counts, in files for
    other tools."""
    strata = _strata(samples, classes, is_allocated)
    return {number: (of_bytes.factor, of_blocks.factor) for number, (of_bytes, of_blocks) in strata.items()}
