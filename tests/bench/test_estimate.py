"""The ratio of pairs and its interval, under simulated noise."""

import math
import random
from collections.abc import Iterator

import pytest
from harness.estimate import PAIRS_MIN, Estimate, estimate

ROWS = 20
PAIRS_MAX = 400


def pairs_of(ratio: float, draw: random.Random) -> Iterator[tuple[float, float]]:
    """The machine's speed drifts by tens of percents, each run errs by 3 %, every tenth by up to a half."""
    drift = 0.0
    while True:
        drift = 0.9 * drift + draw.gauss(0, 0.1)

        def run(seconds: float, drift: float = drift) -> float:
            slowed = draw.uniform(1, 1.5) if draw.random() < 0.1 else 1.0
            return seconds * slowed * 2.0 ** (drift + draw.gauss(0, 0.04))

        yield run(1), run(ratio)


def found(ratio: float, draw: random.Random) -> Estimate:
    """Stops as a campaign does."""
    ours, theirs = [], []
    for first, second in pairs_of(ratio, draw):
        ours.append(first)
        theirs.append(second)
        each = estimate(ours, theirs)
        if each.is_enough or each.pairs == PAIRS_MAX:
            return each
    raise AssertionError


@pytest.mark.parametrize("ratio", [1.0, 1.03, 1.2, 0.5])
def test_a_known_ratio_is_right(ratio: float) -> None:
    """Within 1.5 %, or a tenth of the difference, in 19 of 20 rows."""
    draw = random.Random(int(ratio * 100))
    rows = [found(ratio, draw) for _ in range(ROWS)]
    assert all(each.is_known for each in rows)
    assert all(PAIRS_MIN <= each.pairs < PAIRS_MAX for each in rows)
    error = max(0.015, abs(math.log(ratio)) / 10)
    assert sum(abs(each.ratio / ratio - 1) <= error for each in rows) >= ROWS - 1


def test_what_is_too_noisy_is_not_known() -> None:
    draw = random.Random(3)
    noisy = [draw.uniform(1, 2) for _ in range(40)]
    each = estimate([1.0] * 40, noisy)
    assert not each.is_known
    assert each.low < each.ratio < each.high
    assert each.pairs_needed > 5 * each.pairs
    assert not estimate([1.0] * 3, [1.0] * 3).is_known, "three pairs are too few, whatever they say"
