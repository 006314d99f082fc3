"""Ages in pprof files: the bounds of each row, and never a rounded figure that looks like an exact one."""

import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hakmem.profile.files import loaded, writer_of
from hakmem.profile.model import Mode, Profile, Sample
from hakmem.profile.pprof import to_pprof
from hakmem.profile.pprof_reader import from_pprof
from hakmem.profile.protobuf import Message
from hakmem.profile.sites import site_table
from hakmem.views.profile_text import ages_text
from profiles.worlds import profile_of
from results import captured

STACK = (0x1000, 0x2000)


def profile_of_ages(*ages_ms: int) -> Profile:
    one = Sample.of(STACK, 7, 64, 60, 4096)
    made = profile_of([replace(one, age_ms=age) for age in ages_ms], mode=Mode.AGE)
    made.header.mode = Mode.AGE
    return made


def through(profile: Profile, name: str) -> Profile:
    return loaded(writer_of(Path(name))(profile), name)


def test_a_row_has_the_ages_of_its_youngest_and_its_oldest_sample() -> None:
    ages = [0, 3, 9000, 12_345, 16_000, 16_500]
    back = through(profile_of_ages(*ages), "x.pb.gz")
    found = sorted((one.age_ms, one.age_max_ms, one.samples) for one in back.samples)
    assert found == [(0, None, 1), (3, None, 1), (9000, 16_000, 3), (16_500, None, 1)]


def test_a_table_from_a_file_shows_bounds() -> None:
    made = profile_of_ages(9000, 12_345, 16_000)
    assert ages_text(site_table(made).sites[0]) == ["12.3 s", "16 s"]
    for name in ("x.pb.gz", "x.json"):
        again = through(through(made, "x.pb.gz"), name)
        assert ages_text(site_table(again).sites[0]) == ["9 s – 16 s", "16 s"], name
    assert ages_text(site_table(through(made, "x.json")).sites[0]) == ["12.3 s", "16 s"]


def test_files_of_older_versions_have_rounded_ages() -> None:
    """Their label was `age`, the largest power of two below."""
    data = gzip.decompress(to_pprof(profile_of_ages(8192)))
    for name, older in ((b"age_min", b"age"), (b"age_max", b"other")):
        data = data.replace(bytes(Message().data(6, name)), bytes(Message().data(6, older)))
    (one,) = from_pprof(data, "older").samples
    assert (one.age_ms, one.age_max_ms) == (8192, 16_383)


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
