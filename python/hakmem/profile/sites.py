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

    @property
    def ages_ms(self) -> list[tuple[int, int, float]]:
        """(age of the youngest, of the oldest, bytes) of its samples, youngest first; without those of
        unknown age.  Of samples from a file that has them in rows the two differ."""
        return sorted(
            (one.age_ms, max(one.age_ms, one.age_max_ms or 0), one.weight_bytes)
            for one in self.samples
            if one.age_ms is not None
        )


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
class _Stratum:
    """The samples of one class, and what they are scaled to; None: as they are."""

    bytes: Estimate
    blocks: Estimate
    exact_bytes: float | None = None
    exact_blocks: float | None = None
    is_certain: bool = False  # the exact figures are, and not bounds

    @property
    def all_bytes(self) -> Estimate:
        """The class's bytes that no site has."""
        if self.exact_bytes is None or self.bytes.value <= 0:
            return self.bytes
        if self.is_certain:
            return Estimate(self.exact_bytes, samples=self.bytes.samples)
        return self.scaled_bytes(self.bytes)

    def scaled_bytes(self, part: Estimate) -> Estimate:
        return self._scaled(part, self.bytes, self.exact_bytes)

    def scaled_blocks(self, part: Estimate) -> Estimate:
        return self._scaled(part, self.blocks, self.exact_blocks)

    def _scaled(self, part: Estimate, whole: Estimate, exact: float | None) -> Estimate:
        if exact is None or whole.value <= 0:
            return part
        if self.is_certain:
            return share_of(part, whole, exact)
        return part.times(exact / whole.value)


def site_table(profile: Profile, key: StackKey = whole_stack) -> SiteTable:
    """Its samples, as its mode wants them, grouped by `key`."""
    samples, is_allocated = profile.shown, profile.header.mode is Mode.ALLOCATED
    strata = _strata(samples, profile.classes, is_allocated)
    sites = list(_sites(samples, strata, key))
    sites.sort(key=lambda site: -site.bytes.value)
    sampled = total(stratum.all_bytes for stratum in strata.values() if stratum.bytes.samples)
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


def _sites(samples: Iterable[Sample], strata: dict[int, _Stratum], key: StackKey) -> Iterable[Site]:
    groups: dict[Hashable, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        groups[key(sample.stack)][sample.class_number].append(sample)
    for name, by_class in groups.items():
        together = [sample for part in by_class.values() for sample in part]
        site = Site(name, max(together, key=_weight).stack, samples=together)
        for number, part in by_class.items():
            stratum = strata[number]
            of_bytes, of_blocks, rounding = sums_of(part)
            site.bytes += stratum.scaled_bytes(of_bytes)
            site.blocks += stratum.scaled_blocks(of_blocks)
            site.rounding += _scaled_like(stratum, rounding)
        yield site


def _scaled_like(stratum: _Stratum, part: Estimate) -> Estimate:
    """A figure without an exact sum of its own: by the factor of the bytes."""
    if stratum.exact_bytes is None or stratum.bytes.value <= 0:
        return part
    return part.times(stratum.exact_bytes / stratum.bytes.value)


def _strata(
    samples: Iterable[Sample], classes: Iterable[ClassCount], is_allocated: bool
) -> dict[int, _Stratum]:
    parts: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        parts[sample.class_number].append(sample)
    counts = {count.class_number: count for count in classes}
    strata = {}
    for number in parts.keys() | counts.keys():
        part = parts.get(number, [])
        of_bytes, of_blocks, _ = sums_of(part)
        strata[number] = _stratum(of_bytes, of_blocks, counts.get(number), is_allocated)
    return strata


def _stratum(
    of_bytes: Estimate, of_blocks: Estimate, count: ClassCount | None, is_allocated: bool
) -> _Stratum:
    if count is None:
        return _Stratum(of_bytes, of_blocks)
    if is_allocated:
        if not count.allocated_blocks:
            return _Stratum(of_bytes, of_blocks)
        return _Stratum(of_bytes, of_blocks, count.allocated_bytes, count.allocated_blocks, True)
    return _Stratum(
        of_bytes,
        of_blocks,
        _within(of_bytes.value, count.live_bytes - count.before_bytes, count.live_bytes),
        _within(of_blocks.value, count.live_blocks - count.before_blocks, count.live_blocks),
        not count.before_bytes,
    )


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _the_rest(
    classes: Iterable[ClassCount], strata: dict[int, _Stratum], is_allocated: bool
) -> tuple[Remainder, float]:
    """Bytes from before the profile, and those of classes without a sample."""
    value = down = up = most = unsampled_bytes = 0.0
    for count in classes:
        stratum = strata[count.class_number]
        if is_allocated:
            unsampled_bytes += 0 if stratum.bytes.samples else count.allocated_bytes
            continue
        sampled = stratum.all_bytes
        rest = max(0.0, count.live_bytes - sampled.value)
        old = min(rest, float(count.before_bytes))
        unsampled_bytes += 0 if stratum.bytes.samples else rest - old
        low, high = sampled.interval
        value, most = value + old, most + min(count.before_bytes, count.live_bytes)
        down, up = math.hypot(down, high - sampled.value), math.hypot(up, sampled.value - low)
    return Remainder(value, (max(0.0, value - down), min(most, value + up))), unsampled_bytes


def factors_of(
    samples: Iterable[Sample], classes: Iterable[ClassCount], is_allocated: bool
) -> dict[int, tuple[float, float]]:
    """By class, the factors of bytes and blocks that make them add up to the exact counts, in files for
    other tools."""
    return {number: _factors(stratum) for number, stratum in _strata(samples, classes, is_allocated).items()}


def _factors(stratum: _Stratum) -> tuple[float, float]:
    def factor(exact: float | None, whole: Estimate) -> float:
        return 1.0 if exact is None or whole.value <= 0 else exact / whole.value

    return factor(stratum.exact_bytes, stratum.bytes), factor(stratum.exact_blocks, stratum.blocks)
