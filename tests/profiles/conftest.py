"""Fixtures of the tests of python/hakmem/profile.

`pprof_tool`       the path of pprof itself, which newer Go compiles when it is first asked for
`named`            a profile of three sites with names, classes and mappings, for files
`program(name)`    a program under test, or a skip that says why it is missing (from tests/real)
`tool`             the console script (from tests/tool)
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hakmem.profile.model import Frame, Mapping, Profile, Rate
from profiles.worlds import Load, counts_of, drawn, profile_of
from real.conftest import program, why_missing
from results import captured
from tool.conftest import tool

__all__ = ["program", "tool", "why_missing"]

# Without a package index `make` leaves the tool out, and says so.
collect_ignore_glob = [] if importlib.util.find_spec("hakmem") else ["test_*.py"]

BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
SITES = ("parse", "serve", "cache_fill")
LOADS = [
    Load(0, 64, 200_000, 56),
    Load(1, 64, 50_000, 50),
    Load(1, 4096, 4_000, 4000),
    Load(2, 1 << 20, 20, (1 << 20) - 100),
]
BEFORE = [Load(9, 64, 30_000)]


@pytest.fixture(scope="session")
def pprof_tool(program: Callable[[str], Path]) -> Path:
    words = [program("go"), "tool", "-n", "pprof"]
    step = captured(words, timeout=280)
    if step.returncode:
        pytest.skip(f"this go has no pprof: {step.stderr.strip()[:200]}")
    return Path(step.stdout.strip())


@pytest.fixture
def named() -> Profile:
    return named_profile()


def named_profile(seed: int = 1, loads: list[Load] | None = None) -> Profile:
    loads = loads or LOADS
    profile = profile_of(drawn(loads, np.random.default_rng(seed)), counts_of(loads, BEFORE))
    header = profile.header
    header.command = ["/opt/server/bin/server", "--port", "80"]
    header.began_s, header.ended_s = 1_800_000_000.0, 1_800_000_010.0
    header.rates = [Rate(0, 4096), Rate(1500, 512 << 10)]
    header.lost_samples, header.merged_samples = 3, 128
    profile.mappings = [
        Mapping(0x1000, 0x400000, 0x1000, "/opt/server/bin/server", BUILD_ID),
        Mapping(0x500000, 0x700000, 0, "/usr/lib/libc.so.6", "ff" * 20),
    ]
    for number, name in enumerate(SITES):
        place = 0x1000 + 0x10 * number
        profile.names[place] = (
            Frame("operator new(unsigned long)"),
            Frame(name, f"/src/{name}.cc", 10 + number),
        )
    profile.names[0x500000] = (Frame("main", "/src/main.cc", 99),)
    return profile
