"""Growth from one reading to the next, and survival: synthetic worlds whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from hakmem.profile.growth import Grown, Growth, growth
from hakmem.profile.model import ClassCount, Profile, Sample
from hakmem.profile.survival import Survival, bounds_ms, row_of, survival
from profiles.worlds import RATE_BYTES, Load, drawn, profile_of, stack_of

SECONDS = 10.0
ROWS = 24
KEEPER, TURNER, FREER = 1, 2, 3  # sites


def reading(samples: list[Sample], places: list[int], ended_s: float, classes: list[ClassCount]) -> Profile:
    made = profile_of(samples, classes)
    made.header = replace(made.header, began_s=0.0, ended_s=ended_s)
    made.blocks = places
    return made


def aged(samples: list[Sample], random: np.random.Generator, longest_s: float) -> list[Sample]:
    ages = random.uniform(0, longest_s * 1000, len(samples)).astype(int).tolist()
    return [replace(one, age_ms=age) for one, age in zip(samples, ages, strict=True)]


def places_from(first: int, count: int) -> list[int]:
    return list(range(first, first + count * 4096, 4096))


def class_count(load: Load, live_blocks: int, before_blocks: int) -> ClassCount:
    size = load.block_bytes
    return ClassCount(
        load.class_number, size, live_blocks, live_blocks * size, before_blocks, before_blocks * size
    )


def world(random: np.random.Generator, came: int, went: int, unseen_freed: int = 0) -> Grown:
    """A site whose blocks came and went since the first reading, and as many blocks without a site."""
    kept, new, old = (Load(KEEPER, 4096, number) for number in (30000, came, went))
    common, fresh, gone = (drawn([load], random) for load in (kept, new, old))
    common = aged(common, random, 1000.0)
    fresh = aged(fresh, random, SECONDS)
    places = places_from(1 << 20, len(common))
    before = reading(
        [*common, *gone], [*places, *places_from(1 << 30, len(gone))], 100.0,
        [class_count(kept, kept.blocks + went + unseen_freed, 0)],
    )  # fmt: skip
    after = reading(
        [*common, *fresh], [*places, *places_from(1 << 40, len(fresh))], 100.0 + SECONDS,
        [class_count(kept, kept.blocks + came, 0)],
    )  # fmt: skip
    return growth(before, after)


def only(grown: Grown) -> Growth:
    (site,) = grown.sites
    return site


def test_intervals_cover_the_truth_and_are_narrow() -> None:
    """30,000 blocks that stay would make an independent difference ± 40 MiB wide."""
    random = np.random.default_rng(1)
    truth = (6000 - 2000) * 4096
    covered, widths, rounds = 0, [], 400
    for _ in range(rounds):
        low, high = only(world(random, 6000, 2000)).interval
        covered += low <= truth <= high
        widths.append(high - low)
    assert 0.93 <= covered / rounds <= 0.985
    assert np.median(widths) < 2.2 * 1.96 * np.sqrt(8000 * 4096 * RATE_BYTES)


def test_what_is_live_in_both_readings_is_no_growth() -> None:
    found = world(np.random.default_rng(2), 0, 0)
    assert found.sites == []
    assert found.live_bytes == 0


def test_a_site_that_grows_is_certain() -> None:
    site = only(world(np.random.default_rng(3), 8000, 0))
    assert site.is_significant
    assert site.is_certain
    assert site.is_steady
    assert site.bytes == pytest.approx(8000 * 4096, rel=0.4)


def test_blocks_that_replace_older_ones_are_not_certain() -> None:
    """As many blocks without a site were freed: the class has not grown."""
    random = np.random.default_rng(4)
    certain = [only(world(random, 8000, 0, unseen_freed=8000)) for _ in range(50)]
    assert all(site.is_significant for site in certain)
    assert not any(site.is_certain for site in certain)


def test_chance_is_no_growth() -> None:
    """A site whose blocks come and go: of 400 readings about one is beyond three standard errors."""
    random = np.random.default_rng(5)
    found = [world(random, 4000, 4000).sites for _ in range(400)]
    assert sum(site.is_significant for sites in found for site in sites) <= 4


def test_two_sites_of_one_class() -> None:
    """One grows, another frees what it had before the first reading, before sampling began."""
    random = np.random.default_rng(6)
    load = Load(KEEPER, 4096, 8000)
    other = Load(TURNER, 4096, 8000)
    fresh = aged([*drawn([load], random), *drawn([other], random)], random, SECONDS)
    after = reading(fresh, places_from(1 << 30, len(fresh)), SECONDS, [class_count(load, 108000, 100000)])
    before = reading([], [], 0.0, [])
    sites = {site.stack: site for site in growth(before, after).sites}
    assert len(sites) == 2
    # Either may be the one that has grown by those 8,000: neither is certain.
    assert not any(site.is_certain for site in sites.values())


def alone(random: np.random.Generator, blocks: int, other: int = 0) -> list[Growth]:
    """Sites of one class that was empty, by what they grew; sampled at RATE_BYTES."""
    loads = [Load(KEEPER, 4096, blocks), Load(TURNER, 4096, other)]
    fresh = aged(drawn(loads, random), random, SECONDS)
    after = reading(
        fresh, places_from(1 << 30, len(fresh)), SECONDS, [class_count(loads[0], blocks + other, 0)]
    )
    found = growth(reading([], [], 0.0, []), after)
    assert found.risen_bytes == (blocks + other) * 4096
    return [site for site in found.sites if site.stack == Sample.of(stack_of(KEEPER), 1, 1, 1, 1).stack]


def test_what_its_class_grew_is_shared_out_among_its_sites() -> None:
    """Eight samples on average, fewer than chance alone would take: the class's growth is exact."""
    random = np.random.default_rng(10)
    blocks, rounds = 8 * RATE_BYTES // 4096, 300
    sites = [site for _ in range(rounds) for site in alone(random, blocks)]
    assert len(sites) == rounds
    assert sum(site.is_significant and site.is_certain for site in sites) > 0.9 * rounds
    assert sum(site.interval[0] <= blocks * 4096 <= site.interval[1] for site in sites) >= 0.95 * rounds


def test_a_share_of_a_class_covers_the_truth() -> None:
    random = np.random.default_rng(11)
    blocks, rounds = 30 * RATE_BYTES // 4096, 400
    sites = [site for _ in range(rounds) for site in alone(random, blocks, blocks // 2)]
    assert len(sites) == rounds
    covered = sum(site.interval[0] <= blocks * 4096 <= site.interval[1] for site in sites)
    assert 0.93 <= covered / rounds <= 0.99


def test_no_site_grew_by_more_than_is_live() -> None:
    """In a core, too, where the growth of the class is unknown: a few samples stand for too much."""
    random = np.random.default_rng(12)
    load = Load(KEEPER, 4096, 500)
    fresh = aged(drawn([load] * 4, random), random, SECONDS)
    after = reading(fresh, places_from(0, len(fresh)), SECONDS, [class_count(load, load.blocks, load.blocks)])
    site = only(growth(None, after))
    assert sum(one.weight_bytes for one in fresh) > load.total_bytes, "or nothing is tested"
    assert site.certain is None
    assert site.bytes <= load.total_bytes
    assert site.blocks <= load.blocks
    assert site.interval[1] <= load.total_bytes


def test_what_was_loaded_once_is_not_steady() -> None:
    random = np.random.default_rng(7)
    load = Load(KEEPER, 4096, 8000)
    loaded = [replace(one, age_ms=9000) for one in drawn([load], random)]
    after = reading(loaded, places_from(0, len(loaded)), SECONDS, [class_count(load, 8000, 0)])
    site = only(growth(reading([], [], 0.0, []), after))
    assert site.is_certain
    assert not site.is_steady


def test_without_a_first_reading_it_counts_from_the_beginning() -> None:
    random = np.random.default_rng(8)
    load = Load(KEEPER, 4096, 8000)
    young, old = aged(drawn([load], random), random, SECONDS), drawn([load], random)
    samples = [*young, *(replace(one, age_ms=60000) for one in old)]
    after = reading(samples, places_from(0, len(samples)), SECONDS, [])
    found = growth(None, after)
    assert found.live_bytes is None
    assert only(found).certain is None
    assert only(found).came.samples == len(young)


def test_shrinking_is_not_growth() -> None:
    site = only(world(np.random.default_rng(9), 0, 8000))
    assert site.bytes < 0
    assert not site.is_significant
    assert not site.is_steady


# ---- survival --------------------------------------------------------------------------------------


def lives(random: np.random.Generator, lifetimes_ms: np.ndarray, watched_ms: float) -> Survival:
    """Blocks that are born all the time, each seen until now."""
    births = random.uniform(0, watched_ms, len(lifetimes_ms))
    ages = (watched_ms - births).astype(int)
    is_freed = lifetimes_ms < ages
    counts = [0] * ROWS
    for age in lifetimes_ms[is_freed].astype(int).tolist():
        counts[row_of(age, ROWS)] += 1
    base = Sample.of(stack_of(FREER), 1, 64, 64, 4096)
    made = profile_of([replace(base, age_ms=age) for age in ages[~is_freed].tolist()])
    made.lifetimes = {base.stack: tuple(counts)}
    return survival(made)[base.stack]


def test_rows_are_the_samplers() -> None:
    bounds = bounds_ms(ROWS)
    for age, row in ((0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11), (1 << 40, ROWS - 1)):
        assert row_of(age, ROWS) == row
        assert bounds[row] <= age


def test_survival_is_estimated_with_its_interval() -> None:
    """Exponential lifetimes of 2 s on average, watched for 10 s."""
    random = np.random.default_rng(1)
    rounds, checked = 300, (512, 2048, 4096)
    covered = dict.fromkeys(checked, 0)
    for _ in range(rounds):
        found = lives(random, random.exponential(2000, 300), 10000)
        for age in checked:
            point = found.at(age)
            assert point is not None
            covered[age] += point.low <= np.exp(-age / 2000) <= point.high
    assert all(0.90 <= count / rounds <= 0.99 for count in covered.values()), covered


def test_a_leak_amid_what_is_freed() -> None:
    """One block in four is lost; the others live 5 ms."""
    random = np.random.default_rng(2)
    found = lives(random, np.where(random.random(400) < 0.25, 1e12, 5.0), 10000)
    assert found.last_freed_ms == 8
    assert found.older > 80
    point = found.at(4096)
    assert point is not None
    assert point.low < 0.25 < point.high


def test_a_collector_that_comes_by_every_few_seconds() -> None:
    """Its live blocks are not older than its freed ones, or not far."""
    random = np.random.default_rng(5)
    found = lives(random, random.uniform(3000, 6000, 400), 10000)
    assert found.last_freed_ms == 8192
    assert found.older == 0


def test_nothing_was_freed() -> None:
    found = lives(np.random.default_rng(3), np.full(100, 1e12), 10000)
    assert (found.freed_samples, found.last_freed_ms, found.older) == (0, 0, 100)
    last = found.points()[-1]
    assert (last.share, last.high) == (1, 1)
    assert last.age_ms <= found.oldest_ms
    assert 0.9 < found.points()[3].low < 1


def test_all_were_freed() -> None:
    found = lives(np.random.default_rng(4), np.full(100, 5.0), 1e6)
    assert found.last_freed_ms == 8
    assert found.older == 0
    assert found.points()[-1].share == pytest.approx(0, abs=0.01)
    assert found.at(60000) is None


def test_a_life_too_long_for_the_last_row() -> None:
    """Blocks freed there may have been of any age."""
    made = Survival((0,) * (ROWS - 1) + (3,), (0,) * ROWS, ())
    assert made.last_freed_ms is None
    assert made.older == 0


def test_no_blocks_at_all() -> None:
    empty = Survival((), (), ())
    assert empty.points() == []
    assert empty.at(1) is None
    assert empty.older == 0
