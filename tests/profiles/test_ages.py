"""Ages in pprof files: the bounds of each row."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hakmem.profile.files import loaded, writer_of
from hakmem.profile.model import Profile, Sample
from hakmem.profile.pprof import to_pprof
from profiles.worlds import profile_of
from results import captured

STACK = (0x1000, 0x2000)


def profile_of_ages(*ages_ms: int) -> Profile:
    one = Sample.of(STACK, 7, 64, 60, 4096)
    return profile_of([replace(one, age_ms=age) for age in ages_ms])


def through(profile: Profile, name: str) -> Profile:
    return loaded(writer_of(Path(name))(profile), name)


def test_a_row_has_the_ages_of_its_youngest_and_its_oldest_sample() -> None:
    ages = [0, 3, 9000, 12_345, 16_000, 16_500]
    back = through(profile_of_ages(*ages), "x.pb.gz")
    found = sorted((one.age_ms, one.age_max_ms, one.samples) for one in back.samples)
    assert found == [(0, None, 1), (3, None, 1), (9000, 16_000, 3), (16_500, None, 1)]


def test_pprof_shows_both(pprof: Callable[..., str]) -> None:
    shown = pprof(profile_of_ages(9000, 12_345, 16_000), "-tags")
    assert re.search(r"age_min: Total .*\n\s+\S+ \(\s*100%\): 9s", shown), shown
    assert re.search(r"age_max: Total .*\n\s+\S+ \(\s*100%\): 16s", shown), shown


@pytest.fixture
def pprof(pprof_tool: Path, tmp_path: Path) -> Callable[..., str]:
    def run(profile: Profile, *words: str) -> str:
        path = tmp_path / "x.pb.gz"
        path.write_bytes(to_pprof(profile))
        step = captured([pprof_tool, *words, path], check=True)
        return step.stdout

    return run
