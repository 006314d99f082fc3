"""Samples of whole programs stand for what those did: twelve patterns that careless samplers misjudge.

`PROFILE_SAMPLES=1000000` takes a million samples of each (`make soak`); else there are fewer, and the bounds
are what chance leaves.  docs/PROFILING.md lists the patterns."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from profiles.patterns import PATTERNS, Found, Pattern, run

PROGRAM = Path(__file__).parent / "programs" / "patterns.c"
SAMPLES = int(os.environ.get("PROFILE_SAMPLES", "60000"))
BIAS_MAX = 0.01
ERRORS_MAX = 5.0  # standard errors: one in two million by chance
EXACT = 1e-9  # of blocks each of which is a sample


def name_of(pattern: Pattern) -> str:
    return pattern.name if pattern.times < 300_000 else f"{pattern.name}, full table"


def told(pattern: Pattern, found: Found) -> str:
    head = f"{name_of(pattern)}: {found.samples:,} samples, {found.halvings} halvings"
    rows = [(name, *next(row.biases())) for name, row in found.rows()]
    return f"{head}; " + ", ".join(f"{name} {bias:+.3%} (±{error:.3%})" for name, bias, error in rows)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("pattern", PATTERNS, ids=name_of)
def test_no_bias(pattern: Pattern, compile_c: Callable[..., Path], lib: Path) -> None:
    found = run(compile_c(PROGRAM), lib, pattern, SAMPLES)
    print(told(pattern, found))
    assert found.samples >= SAMPLES
    for name, row in found.rows():
        for bias, error in row.biases():
            assert abs(bias) <= max(ERRORS_MAX * error, EXACT), f"{name}: {told(pattern, found)}"
            assert abs(bias) < BIAS_MAX or error > BIAS_MAX / ERRORS_MAX, f"{name}: {told(pattern, found)}"


def test_the_patterns_are_listed(root: Path) -> None:
    listed = re.findall(r"^\| \d+ \| ([^|]+) \|", (root / "docs/PROFILING.md").read_text(), re.MULTILINE)
    assert listed == [pattern.name for pattern in PATTERNS[:12]]
