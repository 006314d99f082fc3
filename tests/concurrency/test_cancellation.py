"""No entry of the library is a cancellation point: a thread that ended inside would keep what it holds."""

from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import Compile, Run
from shape.test_library import listed_symbols

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "cancelled.c"

# What the program calls beside the entries.
SCENARIOS = {"misuse", "failing", "exit"}
# Entries that it leaves out, and why.
NOT_CALLED = {
    "hak_stats_block": "data, no function",
    "malloc_conf": "data, no function",
    "malloc_message": "data, no function",
    "dlopen": "loading is no cancellation point; tests/concurrency/test_dynamic_loading.py calls it",
    "dlmopen": "as dlopen",
}

# Rounds at every chance, and what is read or said on the way.
BUSY = {"HAKMEM_DECAY_MS": "1", "HAKMEM_ON_MISUSE": "warn"}
MODES: dict[str, dict[str, str]] = {
    "default": {},
    "busy": BUSY,
    "hardened": BUSY | {"HAKMEM_HARDEN": "1"},
    "hardened-2": {"HAKMEM_HARDEN": "2", "HAKMEM_ON_MISUSE": "warn"},
    "guarded": BUSY | {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"},
    "stats": BUSY | {"HAKMEM_STATS": "json"},
    "limits": BUSY | {"HAKMEM_LIMIT_SOFT": "20M", "HAKMEM_LIMIT_HARD": "90%"},
    "helper": BUSY | {"HAKMEM_HELPER_THREAD": "1"},
}


@pytest.fixture
def program(compile_c: Compile, lib: Path, root: Path) -> Path:
    flags = [INCLUDE_TESTS, f"-I{root / 'src'}", "-Wno-pedantic", f"-Wl,-rpath,{lib.parent}"]
    return compile_c(SOURCE, *flags, lib)


@pytest.fixture
def entries(program: Path, plain: Run) -> list[str]:
    result = plain([program])
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_every_entry_is_called(entries: list[str], root: Path) -> None:
    assert set(entries) - SCENARIOS == listed_symbols(root) - set(NOT_CALLED)


@pytest.mark.long("a second each")
@pytest.mark.parametrize("mode", MODES)
def test_entries_return(mode: str, entries: list[str], program: Path, plain: Run) -> None:
    if mode not in ("default", "hardened"):
        entries = [name for name in entries if not name.startswith(("_Z", "__libc_"))]
    failed = {}
    for entry in entries:
        if entry == "misuse" and "HAKMEM_ON_MISUSE" not in MODES[mode]:
            continue
        result = plain([program, entry], env=MODES[mode], timeout=60)
        if result.returncode != 0:
            failed[entry] = (result.returncode, result.stderr[-300:])
    assert failed == {}
