"""The verdict of `hakmem leaks`: one leak is one sentence."""

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hakmem.blocks.conclusion import Conclusion
from hakmem.blocks.evidence import Evidence, gather_evidence
from hakmem.blocks.growing import Watched
from hakmem.blocks.leaks import Leaks, Sum
from hakmem.profile.model import Frame, Profile, Sample
from hakmem.profile.names import Sources
from hakmem.views.leaks_text import print_sites
from profiles.worlds import RATE_BYTES, Load, drawn, profile_of
from rich.console import Console

SECONDS = 10.0
MALLOC, POLL, SERVE, PASS = 0x1000, 0x2000, 0x3000, 0x4000  # calls
FRAMES = {
    MALLOC: Frame("leak", "/src/x.c", 5),
    POLL: Frame("poll", "/src/x.c", 40),
    SERVE: Frame("serve", "/src/x.c", 12),
    PASS: Frame("pass", "/src/x.c", 60),
}


def samples_of(caller: int, mib: float, random: np.random.Generator, line: int = MALLOC) -> list[Sample]:
    """Blocks of 4 KiB that came in ten seconds."""
    drew = drawn([Load(0, 4096, int(mib * (1 << 20) / 4096))], random)
    ages = (1000 * random.uniform(0, SECONDS, len(drew))).astype(int).tolist()
    return [replace(one, stack=(line, caller), age_ms=age) for one, age in zip(drew, ages, strict=True)]


def watched(samples: Sequence[Sample], freed: dict[tuple[int, ...], int] | None = None) -> Watched:
    """`freed`: how many samples of a stack lived for about a second."""
    after = profile_of([*samples])
    after.header = replace(after.header, began_s=100.0, ended_s=100.0 + SECONDS)
    after.names = {address: (frame,) for address, frame in FRAMES.items()}
    after.blocks = list(range(4096, 4096 * (len(samples) + 1), 4096))
    after.lifetimes = {stack: (0,) * 10 + (count,) + (0,) * 13 for stack, count in (freed or {}).items()}
    before = Profile(replace(after.header, ended_s=100.0))
    return Watched(after, before, period_bytes=RATE_BYTES)


def evidence_of(found: Watched) -> Evidence:
    evidence = gather_evidence(found, None, Sources())
    assert evidence is not None
    return evidence


def verdict_of(evidence: Evidence) -> str:
    return Conclusion(1, ["x"], False, "1.0", evidence, None).verdict


def test_one_leak_of_two_callers_is_one_verdict() -> None:
    random = np.random.default_rng(1)
    evidence = evidence_of(watched([*samples_of(SERVE, 60, random), *samples_of(POLL, 25, random)]))
    (leak,) = evidence.leaks
    assert leak.keeps
    assert leak.frames == (FRAMES[MALLOC],)
    assert leak.growth.bytes == pytest.approx(sum(site.growth.bytes for site in evidence.sites))
    assert len(evidence.sites) == 2, "the table has both"
    said = verdict_of(evidence)
    assert said.startswith("leak (x.c:5) grows by 8."), said
    assert "called by serve:12 (" in said
    assert ", poll:40 (" in said
    assert said.count("MiB/s") == 3


@pytest.mark.parametrize(
    ("definite", "perhaps", "said"),
    [
        (3, 0, "12.0 KiB in 3 blocks are definitely lost."),
        (0, 2, "8.00 KiB in 2 blocks are perhaps lost"),
        (0, 0, ""),
    ],
)
def test_a_site_that_grows_hides_no_block_that_is_lost(definite: int, perhaps: int, said: str) -> None:
    """A cache that fills beside a leak: the leak's site need not grow by more than chance."""
    evidence = evidence_of(watched(samples_of(SERVE, 60, np.random.default_rng(5))))
    reached = SimpleNamespace(
        definite=Sum(definite, 4096 * definite), perhaps=Sum(perhaps, 4096 * perhaps), freeze_tells=True
    )
    verdict = Conclusion(1, ["x"], False, "1.0", evidence, cast(Leaks, reached)).verdict
    assert verdict.startswith("leak (x.c:5) grows by ")
    assert said in verdict
    assert ("lost" in verdict) == bool(said)


def test_callers_with_too_few_samples_add_up() -> None:
    """Seven samples each."""
    random = np.random.default_rng(2)
    few = [samples_of(caller, 8, random)[:7] for caller in (SERVE, POLL, PASS)]
    evidence = evidence_of(watched([one for part in few for one in part]))
    assert not any(site.keeps for site in evidence.sites)
    assert [site.keeps for site in evidence.leaks] == [True]


def test_a_caller_that_frees_is_no_part_of_it() -> None:
    """All ask by one function of the program's own."""
    random = np.random.default_rng(3)
    freed = [replace(one, age_ms=(one.age_ms or 0) // 10) for one in samples_of(PASS, 30, random)]
    blocks = [*samples_of(SERVE, 60, random), *samples_of(POLL, 30, random), *freed]
    evidence = evidence_of(watched(blocks, {(MALLOC, PASS): 500}))
    leak = evidence.leaks[0]
    assert {part.frames[1].function for part in leak.parts} == {"serve", "poll"}
    assert len(evidence.leaks) == 2


def test_lines_are_leaks_of_their_own() -> None:
    random = np.random.default_rng(4)
    other = 0x1010
    found = watched([*samples_of(SERVE, 60, random), *samples_of(SERVE, 60, random, other)])
    assert found.after is not None
    found.after.names[other] = (Frame("leak", "/src/x.c", 7),)
    assert sorted(site.frames[0].line for site in evidence_of(found).leaks) == [5, 7]


# ---- the table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mib", "column"), [(60, "a second"), (0.2, "an hour")])
def test_rates_of_a_column_have_one_unit(mib: float, column: str) -> None:
    """A slow site beside a quick one is in its unit, too."""
    random = np.random.default_rng(6)
    slow = [replace(one, weight_bytes=1e3, weight_blocks=1.0) for one in samples_of(POLL, 6, random)][:4]
    quick = samples_of(SERVE, 60, random) if mib > 1 else slow[:1]
    out = StringIO()
    print_sites(Console(file=out, width=200), evidence_of(watched([*quick, *slow])), everything=True)
    growth = out.getvalue().split("Blocks that live longer")[0]
    assert column in growth
    assert "/s" not in growth
    assert "/h" not in growth
