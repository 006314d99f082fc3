"""What the heading, the notes and the hints of `hakmem profile` say is true of the profile."""

import subprocess
from pathlib import Path

import pytest
from hakmem.profile.model import Header, Mode, Profile, Rate, Sample
from hakmem.profile.session import _how_it_followed
from hakmem.profile.sites import site_table
from hakmem.target.switch import Followed, Switch
from hakmem.target.target import open_process
from hakmem.views.profile_text import heading, hints
from tool.conftest import Tool
from tool.processes import running, runs

STACK = (0x1000, 0x2000)
THREADS = 2  # of pair.c


pair = runs("pair.c", scope="function")


def profile_of(samples: list[Sample], mode: Mode = Mode.LIVE) -> Profile:
    return Profile(
        Header("server", 1, began_s=100, ended_s=110, mode=mode, rates=[Rate(0, 512)]), samples=samples
    )


def sample(age_s: float, rate_bytes: int = 512, requested_bytes: int = 60) -> Sample:
    return Sample.of(STACK, 3, 64, requested_bytes, rate_bytes, age_ms=int(age_s * 1000))


def test_only_threads_are_counted_as_threads(pair: subprocess.Popen[str]) -> None:
    """The starter heap, which no thread has, was one that never followed."""
    with Switch(open_process(pair.pid)) as switch:
        assert switch.followed().heaps == THREADS


@pytest.mark.parametrize(
    ("heaps", "following", "said"),
    [
        (3, 2, "1 of 3 threads is idle; sampling starts with its"),
        (3, 1, "2 of 3 threads are idle; sampling starts with their"),
        (1, 0, "the thread is idle; sampling starts with its next malloc or free"),
    ],
)
def test_one_thread_and_several(heaps: int, following: int, said: str) -> None:
    class Told:
        is_stopped = False

        def wait_followed(self) -> Followed:
            return Followed(heaps, following)

    assert said in _how_it_followed(Told())[0]  # type: ignore[arg-type]


def test_samples_of_earlier_profiles_are_told_apart() -> None:
    """`one in 512 B` is of this profile."""
    line = list(heading(profile_of([sample(1), sample(5), sample(30)])))[1]
    assert line == "3 samples (1 from earlier profiles), one in 512 B on average since"
    assert list(heading(profile_of([sample(1)])))[1] == "1 sample, one in 512 B on average"
    assert list(heading(profile_of([])))[1] == "0 samples"


def said_of(samples: list[Sample]) -> str:
    profile = profile_of(samples)
    return " ".join(hints(profile, site_table(profile), ""))


def test_why_intervals_are_wide() -> None:
    assert said_of([sample(1), sample(1)]) == "Too few samples (2)."
    few_of_many = [sample(1)] * 2000 + [sample(1, 1 << 20)] * 2
    assert "drawn when R was larger" in said_of(few_of_many)
    assert not said_of([sample(1)] * 2000)


def test_nothing_was_sampled(tool: Tool, lib: Path) -> None:
    with running(["/bin/sh", "-c", "echo ready; exec sleep 600"], lib) as process:
        ended = tool("profile", process.pid, "--for", "100ms")
    assert "one in 0 B" not in ended.stdout
    assert "Nothing was sampled: the process allocated little" in ended.stdout or "live" not in ended.stdout
