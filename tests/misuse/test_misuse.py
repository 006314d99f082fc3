"""Each misuse ends its process: it dies by SIGABRT, after exactly one line that names the fault, the
address and the block's class.  Where the block is known and nothing is lost the line is a warning."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from modes import ways_of
from results import Result, Run

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Fault:
    """What the line must say.  `offset` is how far inside its block a misaligned pointer lies."""

    kind: str
    tier: str = ""
    least_bytes: int = 0
    offset: int = 0
    verb: str = "free"


# A block on its way through realloc may be found out by the free at its end.
REALLOC = "(?:realloc|free)"

FAULTS = {
    "free_of_stack": Fault("foreign"),
    "free_of_global": Fault("foreign"),
    "free_of_function": Fault("foreign"),
    "free_of_literal": Fault("foreign"),
    "free_of_own_mapping": Fault("foreign"),
    "free_of_unmapped": Fault("foreign"),
    "free_of_small_number": Fault("foreign"),
    "free_of_wild_pointer": Fault("foreign"),
    "free_of_never_allocated": Fault("invalid"),
    "misaligned_tiny": Fault("misaligned", "tiny", 64, 16),
    "misaligned_tiny_odd": Fault("misaligned", "tiny", 100, 1),
    "misaligned_tiny_last": Fault("misaligned", "tiny", 1000, 999),
    "misaligned_mid": Fault("misaligned", "mid", 5000, 512),
    "misaligned_mid_page": Fault("misaligned", "mid", 30000, 4096),
    "misaligned_large": Fault("misaligned", "large", 100000, 64),
    "misaligned_large_page": Fault("misaligned", "large", 500000, 262144),
    "misaligned_big": Fault("misaligned", "big", 3000000, 16),
    "misaligned_big_page": Fault("misaligned", "big", 20000000, 16777216),
    "misaligned_aligned_alloc": Fault("misaligned", "(?:tiny|mid)", 1024, 8),
    "misaligned_at_thread_exit": Fault("misaligned", "tiny", 64, 16),
    "misaligned_by_another_thread": Fault("misaligned", "tiny", 64, 16),
    "double_free_tiny": Fault("double", "tiny", 64),
    "double_free_mid": Fault("double", "mid", 5000),
    "double_free_large": Fault("double", "large", 100000),
    "double_free_big": Fault("double", "big", 3000000),
    "double_free_zero": Fault("double", "tiny", 1),
    "double_free_after_another": Fault("double", "tiny", 64),
    "double_free_after_thousands": Fault("double", "tiny", 64),
    "double_free_before_thousands": Fault("double", "tiny", 64),
    "double_free_by_another_thread": Fault("double", "tiny", 64),
    "double_free_by_two_others": Fault("double", "mid", 5000),
    "double_free_at_thread_exit": Fault("double", "tiny", 64),
    "double_free_of_ended_thread": Fault("double", "tiny", 64),
    "double_free_of_aligned": Fault("double", "(?:tiny|mid)", 100),
    "double_free_through_realloc": Fault("double", "tiny", 100),
    "double_free_through_realloc_zero": Fault("double", "tiny", 100),
    "double_free_in_heap": Fault("double", "tiny", 100),
    "double_free_of_range_in_heap": Fault("double", "big", 300000),
    "double_free_after_free_all": Fault("double", "tiny", 100),
    "misaligned_in_heap": Fault("misaligned", "tiny", 64, 16),
    "realloc_misaligned_in_heap": Fault("misaligned", "big", 200000, 64, "realloc"),
    "double_delete": Fault("double", "tiny", 64),
    "sized_delete_of_larger": Fault("mismatched", "tiny", 200),
    "sized_delete_of_smaller": Fault("mismatched", "tiny", 64),
    "sized_delete_of_mid": Fault("mismatched", "mid", 5000),
    "sized_delete_of_big": Fault("mismatched", "big", 3000000),
    "sized_delete_of_aligned": Fault("mismatched", "(?:tiny|mid)", 1000),
    "free_sized_of_tiny": Fault("mismatched", "tiny", 64),
    "free_sized_of_large": Fault("mismatched", "large", 100000),
    "realloc_of_stack": Fault("foreign", verb="realloc"),
    "realloc_of_never_allocated": Fault("invalid", verb="realloc"),
    "realloc_misaligned_tiny": Fault("misaligned", "tiny", 64, 16, REALLOC),
    "realloc_misaligned_mid": Fault("misaligned", "mid", 5000, 1024, REALLOC),
    "realloc_misaligned_large": Fault("misaligned", "large", 100000, 4096, REALLOC),
    "realloc_misaligned_big": Fault("misaligned", "big", 3000000, 65536, REALLOC),
    "realloc_of_freed_tiny": Fault("double", "tiny", 64, verb=REALLOC),
    "realloc_of_freed_mid": Fault("double", "mid", 5000, verb=REALLOC),
    "realloc_of_freed_large": Fault("double", "large", 100000, verb=REALLOC),
    "realloc_of_freed_big": Fault("double", "big", 3000000, verb=REALLOC),
    "usable_size_of_stack": Fault("foreign", verb="malloc_usable_size"),
    "usable_size_of_never_allocated": Fault("invalid", verb="malloc_usable_size"),
}

REASONS = {
    "invalid": r"no block lives there \(class none\)",
    "foreign": r"neither hakmem's nor libc's \(class none\)",
    "misaligned": r"inside the block of (?P<bytes>\d+) bytes at (?P<base>0x[0-9a-f]+)",
    "double": r"the block of (?P<bytes>\d+) bytes is free already",
    "mismatched": r"size argument \d+ does not match the block of (?P<bytes>\d+) bytes"
    r"; freed anyway \(reported once\)",
}

HARMLESS = {"mismatched"}
# After the line of a fault that ends the program: the options that show more of it.
NEXT_STEP = (
    "hakmem:   HAKMEM_HARDEN=1 shows its call stack; "
    "HAKMEM_GUARD=1 those of malloc, free and misuse of sampled blocks\n"
)

# Their slabs have left the thread by then, or are no thread's.
OWNERLESS = {
    "double_free_of_ended_thread",
    "double_free_after_thousands",
    "double_free_in_heap",
    "double_free_after_free_all",
    "misaligned_in_heap",
}
# Of blocks in slabs only: a freed range is nobody's.
OF_A_HEAP = {"double_free_in_heap", "misaligned_in_heap"}

# Debian 12's libc lacks free_sized, any lacks hak_*: what calls those is linked with hakmem.
LINKED = HERE / "linked.c"
PROGRAMS = ways_of(HERE / "misuse.c", LINKED, HERE / "deletes.cc")


def check_line(name: str, stderr: str) -> None:
    fault = FAULTS[name]
    thread = r"(?:, of thread (?P<thread>\d+))?"
    owner = ', of heap "mine"' if name in OF_A_HEAP else thread
    warning = "warning: " if fault.kind in HARMLESS else ""
    block = rf" \({fault.tier} class \d+{owner}\)" if fault.tier else ""
    fault_text = f"{warning}{fault.kind} {fault.verb}"
    pattern = rf"hakmem: {fault_text} of (?P<address>0x[0-9a-f]+): {REASONS[fault.kind]}{block}\n"
    line = re.fullmatch(pattern + ("" if fault.kind in HARMLESS else NEXT_STEP), stderr)
    assert line, stderr
    if "bytes" in line.groupdict():
        assert int(line["bytes"]) >= fault.least_bytes
    if fault.tier in ("tiny", "mid") and name not in OWNERLESS:
        assert line["thread"]
    if fault.kind == "misaligned":
        assert int(line["address"], 16) - int(line["base"], 16) == fault.offset


def status_of(name: str) -> int:
    """Of the program."""
    return 0 if FAULTS[name].kind in HARMLESS else -signal.SIGABRT


def test_every_misuse_has_its_line() -> None:
    assert PROGRAMS.keys() == FAULTS.keys()


MODES = ("preload", "preload-debug", "static")
CASES = [
    (name, mode.replace("preload", "linked") if PROGRAMS[name] == LINKED else mode)
    for name in FAULTS
    for mode in MODES
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_misuse(name: str, mode: str, run_program: Run) -> None:
    result = run_program(PROGRAMS[name], mode, args=[name], stats=False)
    assert (result.returncode, result.stdout) == (status_of(name), "")
    check_line(name, result.stderr)


# ---- HAKMEM_ON_MISUSE: what follows a misuse -------------------------------------------------------------


def run(name: str, on_misuse: str, run_program: Run) -> Result:
    """It does its wrong once, and then ends."""
    environment = {"HAKMEM_ON_MISUSE": on_misuse}
    return run_program(PROGRAMS[name], "static", args=[name], stats=False, env=environment)


@pytest.mark.parametrize("name", PROGRAMS)
def test_warn_says_so_and_goes_on(name: str, run_program: Run) -> None:
    result = run(name, "warn", run_program)
    assert result.returncode == 0, result.stderr
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("hakmem: ") for line in lines)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ignore_goes_on_without_a_word(name: str, run_program: Run) -> None:
    result = run(name, "ignore", run_program)
    assert (result.returncode, result.stderr) == (0, "")


def test_malformed_warns_once_and_aborts(run_program: Run) -> None:
    result = run("double_free_tiny", "shrug", run_program)
    assert result.returncode == -signal.SIGABRT
    warning, fault, _ = result.stderr.splitlines()
    assert warning == 'hakmem: warning: HAKMEM_ON_MISUSE="shrug" is not abort, warn or ignore; ignored'
    assert fault.startswith("hakmem: double free of ")
