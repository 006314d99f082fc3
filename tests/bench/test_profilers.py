"""bench/profilers: the truth about the leaking programs, and how answers are judged by it."""

import sys
from pathlib import Path

import pytest
from results import captured

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "profilers"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("name", ["leak.cc", "leak.rs", "leak.py", "leak.js"])
def test_each_program_says_what_it_leaks(name: str) -> None:
    from comparison.programs import Program  # type: ignore[import-not-found]

    shares = Program("", FOLDER / "programs" / name, 1, []).shares
    assert len(shares) == 12
    assert sum(shares.values()) == pytest.approx(1)
    ordered = sorted(shares.values(), reverse=True)
    assert ordered[0] == pytest.approx(0.227, abs=0.001)
    assert ordered[9] > 1.5 * ordered[10], "the ten largest are told from the rest"


def test_answers_are_judged_by_shares() -> None:
    from comparison.score import of_folded, score  # type: ignore[import-not-found]

    shares = {f"{letter}": 2.0**-number for number, letter in enumerate("abcdefghijkl", start=1)}
    lines = [f"main;site_{name}(int);operator new {1000 * share}" for name, share in shares.items()]
    exact = score(of_folded([*lines, "main;site_a;site_z;malloc 0.01", "no number", ""]), shares)
    assert (exact.found, exact.error) == (10, pytest.approx(0, abs=0.001))
    # All of it at one place, and nothing at the others.
    merged = of_folded(line.replace("site_", "helper_") for line in lines)
    assert score(merged, shares).found == 0
    assert list(merged) == ["other: operator new"]
    doubled = of_folded([*lines, lines[0]])
    judged = score(doubled, shares)
    assert judged.found == 10
    assert judged.error is not None
    assert judged.error > 0.3
    assert score({}, shares).error is None


def test_what_is_unknown_is_refused() -> None:
    words = [sys.executable, FOLDER / "run", "--tool", "nosuch"]
    step = captured(words, timeout=100)
    assert step.returncode == 2
    assert "no tool is called nosuch; there are hakmem profile, heaptrack" in step.stderr
