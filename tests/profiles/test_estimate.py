"""Estimates of sampled bytes: without bias, with intervals that cover, and sums that add up."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hakmem.profile.estimate import Z_SIGNIFICANT, Estimate, difference_interval, difference_z, probability
from hakmem.profile.model import Mode, Profile, Sample
from hakmem.profile.sites import Site, SiteTable, site_table, sums_of
from profiles.worlds import RATE_BYTES, Load, counts_of, drawn, profile_of, stack_of

RUNS = 4000
MIB = 1 << 20
# Blocks from tiny to far above R, few and many of them.
WORLDS = {
    "tiny": [Load(0, 64, 400_000), Load(1, 64, 1_200_000)],
    "few samples": [Load(0, 1024, 16 << 10), Load(1, 1024, 50 << 10)],
    "around R": [Load(0, 400 << 10, 60), Load(1, 600 << 10, 60)],
    "mixed": [Load(0, 48, 300_000), Load(0, 8192, 4000), Load(0, 2 * MIB, 9), Load(1, 48, 500_000)],
}


def test_probability() -> None:
    assert probability(64, 1 << 40) == pytest.approx(64 / 2**40)
    assert probability(RATE_BYTES, RATE_BYTES) == pytest.approx(1 - 1 / math.e)
    assert probability(16, 1) == probability(16, 0) == 1.0


def test_a_sample_stands_for_what_was_not_sampled() -> None:
    one = Sample.of(stack_of(0), 3, 4096, 4000, 1 << 20, halvings=2)
    assert one.weight_blocks == pytest.approx(4 / probability(4096, 1 << 20))
    assert one.weight_bytes == pytest.approx(4096 * one.weight_blocks)
    assert one.rounding_weight == pytest.approx(96 * one.weight_blocks)
    assert one.stack == tuple(address - 1 for address in stack_of(0))
    assert sums_of([Sample.of(stack_of(0), 3, 4096, 4000, 1)])[0] == Estimate(4096, 0.0, 1)


def site(profile: Profile, number: int = 0) -> Site:
    want = stack_of(number)[0] - 1
    return next((one for one in site_table(profile).sites if one.stack[0] == want), Site((), ()))


@pytest.mark.long("2 seconds of draws each", keep=1)
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(
    "draw",
    [
        pytest.param({}, id="one rate"),
        pytest.param({"rates": (4096, RATE_BYTES, 64 << 10)}, id="rates that change"),
        pytest.param({"halvings": 1}, id="halved"),
    ],
)
def test_no_bias_and_intervals_that_cover(name: str, draw: dict[str, object]) -> None:
    """The mean of all runs is the truth; 93 to 97 of 100 intervals contain it, for bytes and for blocks."""
    loads, random = WORLDS[name], np.random.default_rng(seed=len(name))
    truth = sum(load.total_bytes for load in loads if load.site == 0)
    blocks = sum(load.blocks for load in loads if load.site == 0)
    found = [site(profile_of(drawn(loads, random, is_merged=True, **draw))) for _ in range(RUNS)]  # type: ignore[arg-type]
    values = np.array([one.bytes.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(RUNS)
    if name != "around R":  # a site of a few blocks steps from one count to the next: coverage cannot be even
        assert 0.93 <= covered([one.bytes for one in found], truth) <= 0.97
        assert 0.93 <= covered([one.blocks for one in found], blocks) <= 0.97


def covered(estimates: list[Estimate], truth: float) -> float:
    return sum(one.interval[0] <= truth <= one.interval[1] for one in estimates) / len(estimates)


def test_a_small_site_is_covered_on_average_over_sizes() -> None:
    """A count of a few samples cannot have even coverage; over many sizes it has the right one."""
    random = np.random.default_rng(seed=5)
    shares = []
    for samples_expected in np.linspace(1.5, 12, 40):
        blocks = int(samples_expected * RATE_BYTES / 1024)
        found = [bytes_of(drawn([Load(0, 1024, blocks)], random, is_merged=True)) for _ in range(500)]
        shares.append(covered([one for one in found if one.samples], blocks * 1024))
    assert 0.93 <= float(np.mean(shares)) <= 0.98


def bytes_of(samples: list[Sample]) -> Estimate:
    return sums_of(samples)[0]


def test_merged_samples_are_worth_what_single_ones_are() -> None:
    singles = drawn([Load(0, 4096, 100_000)], np.random.default_rng(seed=1))
    count, weight = len(singles), sum(one.weight_blocks for one in singles)
    merged = Sample(singles[0].stack, 13, 4096, 4096, 4096 * weight, weight, count)
    one, other = bytes_of(singles), bytes_of([merged])
    assert (one.value, one.samples) == (pytest.approx(other.value), other.samples)
    assert one.variance == pytest.approx(other.variance)


# ---- scaled to exact counts ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.ALLOCATED])
def test_classes_that_are_counted_make_sites_add_up_exactly(mode: Mode) -> None:
    loads, random = WORLDS["mixed"], np.random.default_rng(seed=2)
    table = site_table(profile_of(drawn(loads, random), counts_of(loads), mode))
    assert sum(one.bytes.value for one in table.sites) == pytest.approx(table.total_bytes)
    assert table.total_bytes == sum(load.total_bytes for load in loads)
    assert table.is_exact
    assert (table.before.value, table.unsampled_bytes) == (pytest.approx(0), 0)


def test_scaling_to_exact_counts_narrows_the_interval_and_it_still_covers() -> None:
    loads, random = [Load(0, 64, 800_000), Load(1, 64, 1_200_000)], np.random.default_rng(seed=3)
    truth = loads[0].total_bytes
    plain, scaled = [], []
    for _ in range(RUNS):
        samples = drawn(loads, random, is_merged=True)
        plain.append(site(profile_of(samples)).bytes)
        scaled.append(site(profile_of(samples, counts_of(loads))).bytes)
    assert 0.93 <= covered(scaled, truth) <= 0.97
    assert np.std([one.value for one in scaled]) < 0.85 * np.std([one.value for one in plain])
    assert abs(np.mean([one.value for one in scaled]) - truth) < 0.01 * truth


def test_what_lived_before_is_a_row_of_its_own() -> None:
    """Half of it has been freed since, which nobody counted."""
    since, kept = [Load(0, 64, 400_000)], [Load(7, 64, 300_000), Load(7, 256, 1000)]
    counts = [
        replace(count, before_bytes=2 * count.before_bytes, before_blocks=2 * count.before_blocks)
        for count in counts_of(since, kept)
    ]
    random, rows = np.random.default_rng(seed=4), []
    for _ in range(RUNS):
        table = site_table(profile_of(drawn(since, random, is_merged=True), counts))
        assert total_of(table) == pytest.approx(table.total_bytes)
        assert table.total_bytes == pytest.approx(sum(load.total_bytes for load in (*since, *kept)))
        rows.append(table.before)
    truth = sum(load.total_bytes for load in kept)
    assert abs(np.mean([row.value for row in rows]) - truth) < 0.02 * truth
    assert sum(row.interval[0] <= truth <= row.interval[1] for row in rows) >= 0.93 * RUNS


def test_what_lives_since_is_at_least_what_cannot_be_from_before() -> None:
    """No estimate leaves the bounds that are counted."""
    since, before = [Load(0, 64, 400_000)], [Load(7, 64, 10_000)]
    random = np.random.default_rng(seed=8)
    for _ in range(100):
        table = site_table(profile_of(drawn(since, random, is_merged=True), counts_of(since, before)))
        assert (
            since[0].total_bytes
            <= table.sampled.value + 1
            <= since[0].total_bytes + before[0].total_bytes + 2
        )
        assert total_of(table) == pytest.approx(table.total_bytes)


def total_of(table: SiteTable) -> float:
    return sum(one.bytes.value for one in table.sites) + table.before.value + table.unsampled_bytes


def test_a_class_without_a_sample_is_told_apart_from_what_lived_before() -> None:
    loads = [Load(0, 64, 400_000), Load(1, 512, 3)]
    samples = [one for one in drawn(loads, np.random.default_rng(6)) if one.block_bytes == 64]
    table = site_table(profile_of(samples, counts_of(loads)))
    assert table.unsampled_bytes == 3 * 512
    assert table.before.value == pytest.approx(0)
    allocated = site_table(profile_of(samples, counts_of(loads), Mode.ALLOCATED))
    assert allocated.unsampled_bytes == 3 * 512


def test_nothing_at_all() -> None:
    table = site_table(Profile())
    assert (table.sites, table.total_bytes, table.sampled.interval) == ([], 0, (0, 0))


# ---- differences --------------------------------------------------------------------------------------


def pairs(before: int, after: int) -> list[tuple[Estimate, Estimate]]:
    random = np.random.default_rng(seed=before + after)

    def one(blocks: int) -> Estimate:
        return bytes_of(drawn([Load(0, 1024, blocks)], random, is_merged=True))

    return [(one(before), one(after)) for _ in range(RUNS)]


@pytest.mark.parametrize(
    ("before", "after"), [(40_000, 40_000), (40_000, 55_000), (0, 30_000), (9_000, 6_000)]
)
def test_intervals_of_differences_cover(before: int, after: int) -> None:
    truth = (after - before) * 1024
    ends = [difference_interval(a, b) for a, b in pairs(before, after)]
    share = sum(low <= truth <= high for low, high in ends) / RUNS
    assert 0.93 <= share <= 0.97


def test_what_did_not_change_is_hardly_ever_significant() -> None:
    false = sum(abs(difference_z(a, b)) > Z_SIGNIFICANT for a, b in pairs(40_000, 40_000))
    assert false <= 0.006 * RUNS  # 0.27 % are expected


def test_what_doubled_is_significant() -> None:
    found = sum(difference_z(a, b) > Z_SIGNIFICANT for a, b in pairs(40_000, 80_000))
    assert found >= 0.95 * RUNS


def test_a_site_that_one_profile_missed_is_not_significant_by_that_alone() -> None:
    """Two samples against none are chance."""
    random = np.random.default_rng(9)
    rare = bytes_of(drawn([Load(0, 1024, 4096)], random)[:2])
    assert rare.samples == 2
    assert abs(difference_z(Estimate(), rare)) < Z_SIGNIFICANT


def test_exact_figures_differ_for_sure() -> None:
    assert difference_z(Estimate(1.0), Estimate(2.0)) == math.inf
    assert difference_z(Estimate(2.0), Estimate(2.0)) == 0.0
