"""The ratio of two allocators' figures in one row, with its 95 % interval, from pairs of runs.

Whatever slows both runs of a pair falls out of their ratio.  A busy machine also slows single runs by tens of
percents: of the pairs' ratios, the lowest and highest fifth count only by their number (the trimmed mean of
their logarithms).  The interval is the bootstrap's, over pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PAIRS_MIN = 10  # with fewer, the bootstrap's intervals are too narrow
# The widest known interval: this factor, or this part of the difference, whose exact size tells nothing
# more of an allocator that is much slower.
KNOWN = 1.03
PART_KNOWN = 1 / 5
# Pairs end at a narrower one: a stop at the first narrow interval is often one by chance.
ENOUGH = 5 / 6
TRIMMED = 0.2  # of the ratios at either end
DRAWS = 1000
SEED = 1


@dataclass(frozen=True)
class Estimate:
    """A ratio and its 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def _width(self) -> float:
        """The interval's, as a part of the widest known one."""
        if self.pairs < PAIRS_MIN:
            return math.inf
        widest = max(math.log(KNOWN), abs(math.log(self.ratio)) * PART_KNOWN)
        return math.log(self.high / self.low) / widest

    @property
    def is_known(self) -> bool:
        return self._width <= 1

    @property
    def is_enough(self) -> bool:
        """No further pair is needed."""
        return self._width <= ENOUGH

    @property
    def pairs_needed(self) -> int:
        """About how many pairs are enough: the interval narrows with the root of their number."""
        if self.is_enough or self.pairs < PAIRS_MIN:
            return max(self.pairs, PAIRS_MIN)
        excess = self._width / ENOUGH
        return max(self.pairs + 1, round(self.pairs * excess * excess))


def mean_spread(pairs: Sequence[Mapping[str, float]]) -> float:
    """The factor from the geometric mean of ratios to an end of its interval: rows err alone."""
    halves = (math.log(each["high"] / each["low"]) / 2 for each in pairs)
    return math.exp(math.hypot(*halves) / len(pairs)) if pairs else 1.0


def _widened(count: int) -> float:
    """By how much the interval is wider than the bootstrap's: as Student's is wider than the normal one."""
    freedom = count - 2 * int(count * TRIMMED) - 1
    student = 1 + 1.21 / freedom + 1.4 / freedom**2  # its quantile of 97.5 % over the normal one's
    return student * math.sqrt(count / (count - 1))


def _centre(logarithms: Any) -> Any:  # noqa: ANN401 - an array, or one number for each of its rows
    count = logarithms.shape[-1]
    cut = int(count * TRIMMED)
    return np.sort(logarithms, axis=-1)[..., cut : count - cut].mean(axis=-1)


def estimate(reference: Sequence[float], other: Sequence[float]) -> Estimate:
    """The ratio other / reference, of figures above 0 in the order of the pairs."""
    logarithms = np.log(np.asarray(other, float) / np.asarray(reference, float))
    count = len(logarithms)
    if count < 2:
        return Estimate(float(np.exp(logarithms.mean())), 0.0, float("inf"), count)
    middle = _centre(logarithms)
    drawn = np.random.default_rng(SEED).integers(0, count, (DRAWS, count))
    ends = np.quantile(_centre(logarithms[drawn]), (0.025, 0.975))
    low, high = middle + (ends - middle) * _widened(count)
    return Estimate(float(np.exp(middle)), float(np.exp(low)), float(np.exp(high)), count)
