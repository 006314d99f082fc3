"""The printed intervals hold the truth in 95 of 100 profiles: real ones, of 64 sites whose truth is known.

The draws of the sites are independent of each other, and of those of the round before: so a round is 64
profiles of a site.  `PROFILE_INTERVALS=20000` makes so many (`make soak`)."""

import math
import os
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hakmem.profile.estimate import Estimate
from hakmem.profile.live import Start, read_profile, read_start
from hakmem.profile.model import Mode, Profile, Stack
from hakmem.profile.sites import site_table
from hakmem.target.switch import read_state
from hakmem.target.target import Target, open_process
from preload import preload_environment
from results import Compile

PROGRAM = Path(__file__).parent / "programs" / "many_sites.c"
INTERVALS = int(os.environ.get("PROFILE_INTERVALS", "1280"))
SITES, PERIOD = 64, 4096
SAMPLES_FROM, SAMPLES_TO = 10, 250  # that a site has on average
CHANCE = 4  # standard errors of the share itself, which few intervals have


@dataclass
class Sites:
    """The program, and which site an address is of."""

    process: subprocess.Popen[str]
    begins: list[int]  # ascending
    numbers: list[int]  # whose they are
    end: int

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def site_of(self, stack: Stack) -> int:
        """-1: none of the 64."""
        found = next((frame for frame in stack if self.begins[0] <= frame < self.end), None)
        return -1 if found is None else self.numbers[bisect_right(self.begins, found) - 1]


@pytest.fixture
def sites(compile_c: Compile, lib: Path) -> Iterator[Sites]:
    environment = preload_environment(lib, "") | {"HAKMEM_PROFILE": str(PERIOD)}
    with subprocess.Popen(
        [compile_c(PROGRAM)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        *begins, end = (int(word, 16) for word in process.stdout.readline().split())
        yield Sites(process, sorted(begins), sorted(range(SITES), key=begins.__getitem__), end)
        process.kill()


def counts_for(block_bytes: int) -> list[int]:
    """Blocks that each site makes: so many that few to many are samples."""
    p = -math.expm1(-block_bytes / PERIOD)
    return [round(samples / p) for samples in np.geomspace(SAMPLES_FROM, SAMPLES_TO, SITES)]


def estimates(sites: Sites, profile: Profile) -> dict[int, Estimate]:
    table = site_table(profile, key=sites.site_of)
    return {int(str(site.key)): site.bytes for site in table.sites}


def is_covered(truth: float, found: Estimate) -> bool:
    low, high = found.interval
    return low <= truth <= high


KINDS: dict[str, Callable[[Target, Start], Profile]] = {
    "live": lambda target, start: read_profile(target, Mode.LIVE, start, with_counts=False),
    "live, scaled to exact counts": lambda target, start: read_profile(target, Mode.LIVE, start),
    "allocated": lambda target, start: read_profile(target, Mode.ALLOCATED, start, with_counts=False),
}


@pytest.mark.long("2 seconds of samples each")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "block_bytes"), [*((kind, 64) for kind in KINDS), ("live", PERIOD)], ids=str
)
def test_intervals_cover(kind: str, block_bytes: int, sites: Sites) -> None:
    counts = counts_for(block_bytes)
    words = " ".join(map(str, counts))
    covered, errors = [], []
    target = open_process(sites.process.pid)
    for _ in range(math.ceil(INTERVALS / SITES)):
        start = read_start(target)
        sites.say(f"round {block_bytes} {words}")
        found = estimates(sites, KINDS[kind](target, start))
        for site, count in enumerate(counts):
            covered.append(is_covered(count * block_bytes, found.get(site, Estimate())))
            errors.append(found.get(site, Estimate()).value / (count * block_bytes) - 1)
        sites.say("give")
    share, chance = float(np.mean(covered)), CHANCE * math.sqrt(0.95 * 0.05 / len(covered))
    print(f"{kind}, blocks of {block_bytes}: {share:.2%} of {len(covered)} intervals hold the truth, "
          f"mean error {np.mean(errors):+.3%}")  # fmt: skip
    assert min(0.93, 0.95 - chance) <= share <= max(0.97, 0.95 + chance)
    assert abs(np.mean(errors)) < CHANCE * np.std(errors) / math.sqrt(len(errors))


def test_a_tenth_of_the_bytes_is_known_to_a_tenth(sites: Sites) -> None:
    """After 5,000 samples, which a busy program has after 5 s: about 500 are the site's."""
    counts = [6400, *[900] * (SITES - 1)]
    truth, whole = 64 * counts[0], 64 * sum(counts)
    assert 0.1 <= truth / whole < 0.105
    target = open_process(sites.process.pid)
    start, rounds = read_start(target), 0
    while read_state(target)["samples"] < 5000:
        sites.say(f"round 64 {' '.join(map(str, counts))}")
        sites.say("give")
        rounds += 1
    found = estimates(sites, read_profile(target, Mode.ALLOCATED, start, with_counts=False))[0]
    low, high = found.interval
    assert (high - low) / 2 < 0.1 * rounds * truth
    assert abs(found.value - rounds * truth) < 5 * found.error
