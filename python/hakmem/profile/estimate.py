"""The arithmetic of sampled bytes; nothing else in the tool knows a formula of it.

The sampler takes a block of S bytes with the probability p = 1 - e^(-S/R): bytes are drawn as a Poisson
process with one draw in R bytes on average.  Each sample stands for 1/p blocks and S/p bytes (Horvitz and
Thompson), with the R of its own moment, so that sums are unbiased whatever R did.  Where the table of samples
was halved, p was halved with it.

    value       Σ w                     w = S/p bytes, or 1/p blocks
    variance    Σ w²(1 - p)             estimated from the samples themselves
    interval    95 %, by the score of a Poisson count: the variance at a true value m is m · variance / value,
                so the ends solve (value - m)² = z² · m · variance / value.  With many samples this is
                value ± 1.96 √variance; with few it stays above zero and still covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Z_95 = 1.959963984540054  # two-sided 95 % of a normal distribution
Z_SIGNIFICANT = 3.0  # a difference of so many standard errors is not chance, among hundreds of sites either


def probability(block_bytes: float, rate_bytes: float) -> float:
    """With which a block of this size is sampled; at a rate of 1 byte or less, every block."""
    if rate_bytes <= 1:
        return 1.0
    return -math.expm1(-block_bytes / rate_bytes)


def probabilities(block_bytes: NDArray[np.float64], rate_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
    """`probability` of many blocks, each with its own rate."""
    return np.where(rate_bytes <= 1, 1.0, -np.expm1(-block_bytes / np.maximum(rate_bytes, 1.0)))


@dataclass(frozen=True)
class Estimate:
    """A sum with what is known of its error; `samples` is how many blocks it was made of."""

    value: float = 0.0
    variance: float = 0.0
    samples: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        """Of two disjoint sets of blocks: their draws are independent."""
        return Estimate(
            self.value + other.value, self.variance + other.variance, self.samples + other.samples
        )

    def __sub__(self, other: Estimate) -> Estimate:
        """Of two profiles: independent draws again."""
        return Estimate(
            self.value - other.value, self.variance + other.variance, self.samples + other.samples
        )

    def times(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, self.variance * factor * factor, self.samples)

    @property
    def error(self) -> float:
        """One standard error."""
        return math.sqrt(max(0.0, self.variance))

    @property
    def interval(self) -> tuple[float, float]:
        """Covers the truth in 95 of 100 profiles.  Of a sum; see `difference_interval`."""
        if self.value <= 0 or self.variance <= 0:
            return self.value, self.value
        unit = self.variance / self.value
        middle = self.value + unit * Z_95**2 / 2
        half = Z_95 * math.sqrt(self.variance + (unit * Z_95 / 2) ** 2)
        return max(0.0, middle - half), middle + half

    @property
    def z(self) -> float:
        """By how many standard errors it differs from zero."""
        if self.variance <= 0:
            return math.copysign(math.inf, self.value) if self.value else 0.0
        return self.value / math.sqrt(self.variance)


class Sum:
    """Adds samples up; quicker than adding estimates."""

    def __init__(self) -> None:
        self._value = self._variance = 0.0
        self._samples = 0

    def add(self, weight: float, blocks: float, samples: int) -> None:
        """`samples` blocks that stand for `blocks` blocks and for `weight` of something.

        For one sample p = 1/blocks.  Merged ones are taken as equal: those of one class and one R are."""
        if samples <= 0:
            return
        self._value += weight
        self._samples += samples
        if blocks > samples:
            self._variance += weight * weight / samples * (1 - samples / blocks)

    @property
    def estimate(self) -> Estimate:
        return Estimate(self._value, self._variance, self._samples)


def total(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of disjoint ones."""
    value = variance = 0.0
    samples = 0
    for one in estimates:
        value, variance, samples = value + one.value, variance + one.variance, samples + one.samples
    return Estimate(value, variance, samples)


def share_of(part: Estimate, whole: Estimate, exact: float) -> Estimate:
    """`part` scaled so that `whole`, which contains it, becomes `exact`: post-stratification.

    The error that both have in common is gone: of a site that is the whole class nothing is left.
    Linearised: the residual of a sample is 1 - q inside the part and -q outside, with q = part/whole."""
    if whole.value <= 0:
        return Estimate()
    share = min(1.0, part.value / whole.value)
    factor = exact / whole.value
    outside = max(0.0, whole.variance - part.variance)
    variance = part.variance * (1 - share) ** 2 + outside * share**2
    return Estimate(part.value * factor, variance * factor * factor, part.samples)


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
    variance = before.variance + after.variance
    if variance <= 0:
        return math.copysign(math.inf, grown) if grown else 0.0
    return grown / math.sqrt(variance)
