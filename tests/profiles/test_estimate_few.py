"""A site that has all of the few samples of a class: others may hold blocks of it that were not sampled."""

import math
import re

import numpy as np
import pytest
from hakmem.profile.estimate import TAIL, Estimate, difference_z, share_of, unseen_beside
from hakmem.profile.growth import Growth, growth
from hakmem.profile.model import ClassCount, Header, Profile, Sample
from hakmem.profile.sites import site_table, sums_of
from hakmem.views.profile_text import interval_text
from profiles.worlds import RATE_BYTES, Load, counts_of, drawn, profile_of, stack_of

BLOCK_BYTES = 1024
RUNS = 1000


def of_samples(count: int, rate_bytes: int = RATE_BYTES, block_bytes: int = BLOCK_BYTES) -> Estimate:
    one = Sample.of(stack_of(0), 11, block_bytes, block_bytes, rate_bytes)
    return sums_of([one] * count)[0]


SHARES = [(1, 0.025), (2, 0.158), (5, 0.478), (10, 0.692), (100, 0.964)]


@pytest.mark.parametrize(("count", "share"), SHARES)
def test_all_of_few_samples_are_not_all_of_the_class(count: int, share: float) -> None:
    """The lower ends of Clopper and Pearson: of a smaller share, so many samples are all of one site in less
    than 2.5 % of all profiles."""
    whole = of_samples(count)
    found = share_of(whole, whole, 1000.0)
    assert (found.value, found.samples) == (1000.0, count)
    assert found.interval == pytest.approx((1000 * share, 1000), abs=1)
    assert pytest.approx((found.interval[0] / 1000) ** count, rel=0.02) == TAIL
    assert "exact" not in interval_text(found)


def test_it_is_exact_when_each_block_was_sure_to_be_sampled() -> None:
    every = of_samples(3, rate_bytes=1)
    assert share_of(every, every, 3.0 * BLOCK_BYTES).interval == (3 * BLOCK_BYTES, 3 * BLOCK_BYTES)
    large = of_samples(3, block_bytes=100 * RATE_BYTES)
    assert interval_text(share_of(large, large, 300.0 * RATE_BYTES)) == "exact"
    # If blocks are sampled nearly always, 97.5 %, one more would have been seen.
    nearly = of_samples(20, block_bytes=4 * RATE_BYTES)
    assert interval_text(share_of(nearly, nearly, 20.4 * 4 * RATE_BYTES)) == "exact"
    # If they are missed now and then, one or two may be another's: 0.2² is 4 %, 0.2³ less than 2.5 %.
    missed = of_samples(20, rate_bytes=BLOCK_BYTES, block_bytes=round(BLOCK_BYTES * -math.log(0.2)))
    low, high = share_of(missed, missed, 25.0).interval
    assert (high, math.ceil(low)) == (25, 23)


@pytest.mark.parametrize("samples_expected", [2, 6, 20])
def test_shares_near_the_whole_are_covered(samples_expected: int) -> None:
    """On average over shares: a count of a few samples cannot have even coverage."""
    random = np.random.default_rng(seed=samples_expected)
    blocks, covered, nothing_unseen = samples_expected * RATE_BYTES // BLOCK_BYTES, [], []
    chance = 1 / of_samples(1).value * BLOCK_BYTES
    for share in np.linspace(0.5, 0.995, 12):
        own = round(share * blocks)
        for ours, theirs in zip(
            random.binomial(own, chance, RUNS).tolist(), random.binomial(blocks - own, chance, RUNS).tolist(),
            strict=True,
        ):  # fmt: skip
            if not ours:
                continue
            low, high = share_of(of_samples(ours), of_samples(ours + theirs), blocks).interval
            assert 0 < low <= high <= blocks + 1e-6
            covered.append(low <= own <= high)
            nothing_unseen.append(theirs > 0 or own == blocks)
    assert 0.93 <= np.mean(covered) <= 0.985
    # As it was: exact whenever there is no sample of another site.
    assert samples_expected > 6 or np.mean(nothing_unseen) < 0.93


def test_what_is_sure_stays_above_the_lower_end() -> None:
    """A block that is sampled surely, and one sample of small ones: each with its own skew."""
    sure, few = of_samples(1, block_bytes=1 << 30), of_samples(1)
    low, high = (sure + few).interval
    assert low > sure.value
    assert high == pytest.approx(sure.value + few.interval[1], rel=1e-6)


def test_the_table_is_exact_and_its_only_site_is_not() -> None:
    loads = [Load(0, BLOCK_BYTES, 2000)]
    table = site_table(profile_of(drawn(loads, np.random.default_rng(seed=7)), counts_of(loads)))
    (site,) = table.sites
    assert 0 < site.bytes.samples < 12
    assert table.sampled.interval == (2000 * BLOCK_BYTES, 2000 * BLOCK_BYTES)
    assert table.before.interval == (0, 0)
    for found, whole in ((site.bytes, 2000 * BLOCK_BYTES), (site.blocks, 2000)):
        assert found.value == found.interval[1] == whole
        assert found.interval[0] < 0.9 * whole
    assert re.fullmatch(r"[\d.]+ (K|M)iB – 1\.95 MiB", interval_text(site.bytes))


def test_few_samples_do_not_differ_for_sure() -> None:
    """Both profiles have one site in the class: three samples of 100 bytes, three of 130."""
    whole = of_samples(3)
    before, after = share_of(whole, whole, 100.0), share_of(whole, whole, 130.0)
    assert 0 < difference_z(before, after) < 3


def grown(samples: int, live_bytes: tuple[int, int]) -> Growth:
    """The one site with samples, in a class with these live bytes, before and now."""
    one = Sample.of(stack_of(0), 11, BLOCK_BYTES, BLOCK_BYTES, RATE_BYTES, age_ms=10)
    readings = []
    for made, live, ended_s in (([], live_bytes[0], 2.0), ([one] * samples, live_bytes[1], 3.0)):
        reading = Profile(Header(began_s=1.0, ended_s=ended_s), samples=made)
        reading.classes = [ClassCount(11, BLOCK_BYTES, live // BLOCK_BYTES, live)]
        reading.blocks = list(range(len(made)))
        readings.append(reading)
    (site,) = growth(*readings).sites
    return site


def test_growth_of_a_class_is_not_certainly_that_of_the_one_site_with_a_sample() -> None:
    """The class grew by less than the two samples stand for: others may have grown instead."""
    site = grown(2, (8 * RATE_BYTES, 9 * RATE_BYTES))
    assert site.certain is not None
    assert site.certain.unseen == pytest.approx(unseen_beside(of_samples(1)) ** 2, rel=0.01)
    assert not site.is_certain


@pytest.mark.parametrize(("count", "is_enough"), [(1, False), (2, False), (3, False), (4, True)])
def test_what_is_live_bounds_what_others_grew(count: int, is_enough: bool) -> None:
    """In a class that was nearly empty, too, others may hold most of what came."""
    site = grown(count, (10 * BLOCK_BYTES, RATE_BYTES))
    assert site.certain is not None
    assert site.certain.value == RATE_BYTES - 10 * BLOCK_BYTES
    assert math.sqrt(site.certain.unseen) == pytest.approx(RATE_BYTES * (1 - TAIL ** (1 / count)), rel=0.01)
    assert site.is_significant == is_enough
