"""The arithmetic of sampled bytes; all its formulas are in this file.

The sampler takes a block of S bytes with the probability p = 1 - e^(-S/R): bytes are drawn as a Poisson
process with one draw in R bytes on average.  Each sample stands for 1/p blocks and S/p bytes (Horvitz and
Thompson), with the R of its own moment, so that sums are unbiased whatever R did.  Where the table of samples
was halved, p was halved with it.

    value       Σ w                     w = S/p bytes, or 1/p blocks
    variance    Σ w²(1 - p)             estimated from the samples themselves
    interval    95 %, by the score: the ends m solve (value - m)² = z² · variance at m.  With many samples
                this is value ± 1.96 √variance; with few it stays above zero and still covers.

The variance at m depends on what the samples are of.  Unscaled they are a Poisson count, and it is
m · variance / value; of a share of what is counted exactly (post-stratification) it is that of a binomial one
(E. Wilson, 1927), which ends at the whole.  Both are variance + s·d - c·d² with d = m - value; sums of them
have s = Σ sᵢ·varianceᵢ / variance and c = Σ cᵢ·varianceᵢ² / variance².

That all samples of a class are of one site does not mean that all of its blocks are: of n samples all are
with a probability of shareⁿ.  So the site's lower end is whole · 0.025^(1/n) (C. Clopper and E. Pearson,
1934; nearly the rule of three), and it is the exact sum only if each block was sure to be sampled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from hakmem.layout.memory import Doubles

Z_95 = 1.959963984540054  # two-sided 95 % of a normal distribution
TAIL = 0.025  # of chance, at each end of an interval
Z_SIGNIFICANT = 3.0  # standard errors: a larger difference is not chance, among hundreds of sites either


def probability(block_bytes: float, rate_bytes: float) -> float:
    """The chance that a block of this size is sampled; at a rate of 1 byte or less, every block."""
    if rate_bytes <= 1:
        return 1.0
    return -math.expm1(-block_bytes / rate_bytes)


def probabilities(block_bytes: Doubles, rate_bytes: Doubles) -> Doubles:
    """`probability` of many blocks, each with its own rate."""
    return np.where(rate_bytes <= 1, 1.0, -np.expm1(-block_bytes / np.maximum(rate_bytes, 1.0)))


@dataclass(frozen=True)
class Estimate:
    """A sum with what is known of its error; `samples` is how many blocks it was made of.

    The last three are of the interval's form, and add up as the variance does."""

    value: float = 0.0
    variance: float = 0.0
    samples: int = 0
    slope: float | None = field(default=None, compare=False)  # Σ s·variance; None: as of equal weights
    bend: float = field(default=0.0, compare=False)  # Σ c·variance²
    unseen: float = field(default=0.0, compare=False)  # squares of what is not its own, unseen so far

    def __add__(self, other: Estimate) -> Estimate:
        """The sum over two disjoint sets of blocks: their draws are independent."""
        return total((self, other))

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference of two profiles: independent draws again."""
        both = total((self, other))
        return replace(both, value=self.value - other.value, slope=self._slope - other._slope)

    def times(self, factor: float) -> Estimate:
        return Estimate(
            self.value * factor,
            self.variance * factor**2,
            self.samples,
            self._slope * factor**3,
            self.bend * factor**4,
            self.unseen * factor**2,
        )

    @property
    def _slope(self) -> float:
        if self.slope is None:
            return self.variance**2 / self.value if self.value else 0.0
        return self.slope

    @property
    def uncertainty(self) -> float:
        """The variance, with what others may hold unseen: its end is a 95 % one."""
        return self.variance + self.unseen / Z_95**2

    @property
    def error(self) -> float:
        """One standard error."""
        return math.sqrt(max(0.0, self.uncertainty))

    @property
    def interval(self) -> tuple[float, float]:
        """Covers the truth in 95 of 100 profiles.  Of a sum; see `difference_interval`."""
        down = up = 0.0
        if self.value > 0 and self.variance > 0:
            slope = Z_95**2 * self._slope / self.variance
            bend = 1 + Z_95**2 * self.bend / self.variance**2
            root = math.sqrt(slope**2 + 4 * bend * Z_95**2 * self.variance)
            down, up = (root - slope) / (2 * bend), (root + slope) / (2 * bend)
        return max(0.0, self.value - math.hypot(down, math.sqrt(self.unseen))), self.value + up


class Sum:
    """Adds samples up; quicker than adding estimates."""

    def __init__(self) -> None:
        self._value = self._variance = self._slope = 0.0
        self._samples = 0

    def add(self, weight: float, blocks: float, samples: int) -> None:
        """`samples` blocks that stand for `blocks` blocks and for `weight` of something.

        For one sample p = 1/blocks.  Merged ones are taken as equal: those of one class and one R are."""
        if samples <= 0:
            return
        self._value += weight
        self._samples += samples
        if blocks > samples:
            each, missed = weight / samples, 1 - samples / blocks
            variance = weight * each * missed
            self._variance += variance
            self._slope += variance * each * missed

    @property
    def estimate(self) -> Estimate:
        return Estimate(self._value, self._variance, self._samples, self._slope)


def total(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of disjoint ones."""
    value = variance = slope = bend = unseen = 0.0
    samples = 0
    for one in estimates:
        value, variance, samples = value + one.value, variance + one.variance, samples + one.samples
        slope, bend, unseen = slope + one._slope, bend + one.bend, unseen + one.unseen
    return Estimate(value, variance, samples, slope, bend, unseen)


def share_of(part: Estimate, whole: Estimate, exact: float) -> Estimate:
    """`part` scaled so that `whole`, which contains it, becomes `exact`: post-stratification.

    The error that both have in common is gone.  Linearised: the residual of a sample is 1 - q inside the part
    and -q outside, with q = part/whole."""
    if whole.value <= 0:
        return Estimate()
    factor = exact / whole.value
    if part.samples >= whole.samples:
        return Estimate(exact, 0.0, part.samples, 0.0, unseen=(exact * _unseen_share(whole)) ** 2)
    share = min(1.0, part.value / whole.value)
    outside = max(0.0, whole.variance - part.variance)
    slope_outside = max(0.0, whole._slope - part._slope)
    variance = part.variance * (1 - share) ** 2 + outside * share**2
    slope = part._slope * (1 - share) ** 3 - slope_outside * share**3
    bend = whole.variance / whole.value**2 * variance**2
    return Estimate(part.value, variance, part.samples, slope, bend).times(factor)


def _unseen_share(whole: Estimate) -> float:
    """The part that other sites may have of a class whose samples are all of one site: 97.5 % have less.

    None of Y blocks of others was drawn with chance (1 - p)^Y.  0 if one block would have been drawn."""
    errors = whole.variance / whole.value**2  # (1 - p)/n
    missed = min(1.0, errors * whole.samples)
    if missed <= TAIL:
        return 0.0
    draws = errors / missed * ((1 - missed) / -math.log(missed) if missed < 1 else 1.0)
    return -math.expm1(math.log(TAIL) * draws)


def unseen_beside(part: Estimate) -> float:
    """Bytes that sites without a sample may hold, by the weight of these samples: 97.5 % have less."""
    return -math.log(TAIL) * part.variance / part.value if part.value > 0 else 0.0


def difference_interval(before: Estimate, after: Estimate) -> tuple[float, float]:
    """95 % of after - before, from both intervals: each end from the two ends that make it (Newcombe)."""
    (before_low, before_high), (after_low, after_high) = before.interval, after.interval
    grown = after.value - before.value
    down = math.hypot(after.value - after_low, before_high - before.value)
    up = math.hypot(after_high - after.value, before.value - before_low)
    return grown - down, grown + up


def difference_z(before: Estimate, after: Estimate) -> float:
    """In standard errors under the assumption that nothing changed.

    A site that was not sampled in one profile has no variance there, though it may have been missed; so both
    share the scale of the other."""
    grown = after.value - before.value
    variance = before.uncertainty + after.uncertainty
    if variance <= 0:
        return math.copysign(math.inf, grown) if grown else 0.0
    return grown / math.sqrt(variance)
