"""`profile --against` of two files of one profile: blocks that live in both are the same and add no error."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hakmem.profile.difference import difference
from hakmem.profile.files import load, save, writer_of
from hakmem.profile.model import Profile, Rate, Sample
from hakmem.profile.pprof import to_pprof
from hakmem.profile.pprof_reader import from_pprof
from profiles.worlds import Load, counts_of, drawn, profile_of
from tool.conftest import Tool

MIB = 1 << 20
LEAK = "0x1010"  # where site 1 is
BEGAN_S, FIRST_S, SECOND_S = 1e9, 300.0, 420.0  # since the profile began
OLD, CAME, WENT = ([Load(site, 4096, size * MIB // 4096) for site, size in sizes.items()] for sizes in (
    {0: 60, 1: 100, 2: 100}, {1: 12, 2: 20}, {2: 20}
))  # fmt: skip


def aged(samples: list[Sample], random: np.random.Generator, low_s: float, high_s: float) -> list[Sample]:
    ages = (1000 * random.uniform(low_s, high_s, len(samples))).astype(int).tolist()
    return [replace(one, age_ms=age) for one, age in zip(samples, ages, strict=True)]


def at(seconds: float, samples: list[Sample], loads: list[Load]) -> Profile:
    made = profile_of(samples, counts_of(loads))
    made.header = replace(
        made.header, began_s=BEGAN_S, ended_s=BEGAN_S + seconds, rates=[Rate(0, 512 << 10)], command=["x"]
    )
    return made


def readings(random: np.random.Generator) -> tuple[Profile, Profile]:
    """Site 1 leaks 12 MiB beside its 100; site 2 frees 20 and allocates as many; site 0 does nothing."""
    between_s = SECOND_S - FIRST_S
    stayed = aged(drawn(OLD, random), random, between_s, SECOND_S)
    went = aged(drawn(WENT, random), random, 0, FIRST_S)
    came = aged(drawn(CAME, random), random, 0, between_s)
    earlier = [replace(one, age_ms=(one.age_ms or 0) - int(1000 * between_s)) for one in stayed]
    return at(FIRST_S, [*earlier, *went], [*OLD, *WENT]), at(SECOND_S, [*stayed, *came], [*OLD, *CAME])


def through_pprof(profile: Profile) -> Profile:
    return from_pprof(to_pprof(profile), "x")


@pytest.mark.parametrize("name", ["x.pb.gz", "x.json"])
def test_a_leak_beside_what_stays_is_shown(name: str, tool: Tool, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}{name}" for number in range(2)]
    for profile, path in zip(readings(np.random.default_rng(1)), paths, strict=True):
        save(profile, path, writer_of(path))
    found = difference(*map(load, paths))
    (leak,) = found.significant
    assert leak.interval[0] < 12 * MIB < leak.interval[1]
    assert leak.before.value == pytest.approx(100 * MIB, rel=0.3)
    assert leak.z > 0
    shown = tool("profile", paths[1], "--against", paths[0]).stdout
    assert "2 other sites" in shown
    assert "+12.0 MiB" in shown.splitlines()[-1], shown
    (back,) = difference(*map(load, reversed(paths))).significant
    assert back.bytes == pytest.approx(-leak.bytes)


@pytest.mark.parametrize("written", [through_pprof, lambda profile: profile], ids=["pprof", "whole"])
def test_intervals_are_those_of_new_and_freed_blocks(written: Callable[[Profile], Profile]) -> None:
    """As independent profiles the leak would be ± 16 MiB, and nearly none were told."""
    random, rounds = np.random.default_rng(2), 20
    told, covered, chance, widths = 0, 0, 0, []
    for _ in range(rounds):
        found = difference(*map(written, readings(random)))
        (leak,) = (one for one in found.changes if one.frames[0].function == LEAK)
        low, high = leak.interval
        told += leak.is_significant
        covered += low <= 12 * MIB <= high
        chance += sum(one.is_significant for one in found.changes if one is not leak)
        widths.append(high - low)
    assert told > 0.8 * rounds
    assert covered >= 0.85 * rounds
    assert chance <= 2
    assert np.median(widths) < 15 * MIB


def test_all_rows_add_up() -> None:
    found = difference(*readings(np.random.default_rng(3)))
    parts = sum(one.bytes for one in found.changes) + found.unseen_bytes
    unsampled = found.after.unsampled_bytes - found.before.unsampled_bytes
    assert parts + unsampled == pytest.approx(12 * MIB, abs=9)


@pytest.mark.parametrize("other", ["pid", "began_s", "merged_samples"])
def test_other_profiles_are_independent(other: str) -> None:
    """Another process, another profile, or a table that was halved between."""
    before, after = readings(np.random.default_rng(4))
    after.header = replace(after.header, **{other: getattr(after.header, other) + 5})
    assert all(change.came is None for change in difference(before, after).changes)
    after.header = before.header
    without_ages = replace(after, samples=[replace(one, age_ms=None) for one in after.samples])
    assert all(change.came is None for change in difference(before, without_ages).changes)
