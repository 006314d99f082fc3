"""Every call that the library makes to the kernel refused, one by one, from some call on, and at random.

The unit test test_failure.c does the same on the fake operating system; here os_linux*.c are what is run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_calls import taking_calls
from modes import INCLUDE_TESTS, assert_silent
from results import Compile, Run, Tally

HERE = Path(__file__).resolve().parent
Refuse = Callable[..., int]

OLD_MREMAP = {"FAULT_OLD_MREMAP": "1"}
HALF = {"FAULT_HALF": "1"}

CALLS_MIN = 40  # the program does ask for things
RANDOM_RUNS = 40
FOR_EVER = 10**9


@pytest.fixture
def refuse(compile_c: Compile, plain: Run, debug_lib: Path) -> Refuse:
    """refuse(first=1, last=…, one_in=1, seed=0, **options): how many calls of one run were refused.

    With FAULT_HALF each has done a part of its work; mremap is always that of kernels before 6.17."""
    shim = compile_c(HERE / "faults.c", INCLUDE_TESTS, "-shared", "-fPIC")
    program = compile_c(HERE / "refused.c", INCLUDE_TESTS)

    def run(first: int = 1, last: int = FOR_EVER, one_in: int = 1, seed: int = 0, **options: str) -> int:
        faults = {"FIRST": first, "LAST": last, "ONE_IN": one_in, "SEED": seed}
        environment = {f"FAULT_{name}": str(value) for name, value in faults.items()}
        result = plain(
            [program],
            env=environment | OLD_MREMAP | options | taking_calls(shim, debug_lib),
            timeout=60,
        )
        assert result.returncode == 0, f"{faults}: {result.stderr}"
        return int(result.stdout)

    return run


@pytest.mark.long("36 seconds each; each call of a run refused once")
@pytest.mark.parametrize("half", [{}, HALF], ids=["nothing", "half"])
def test_one_call(half: dict[str, str], refuse: Refuse, tally: Tally) -> None:
    call = 1
    while refuse(call, call, **half):
        call += 1
    assert call > CALLS_MIN
    tally(call, "faults")


@pytest.mark.long("18 seconds; each call of a run refused once, of a program that makes all kinds")
def test_one_call_of_all_kinds(refuse: Refuse, tally: Tally) -> None:
    """With options that ask the kernel for more, and more often: there every call would take long."""
    runs, call = 0, 1
    options = {"DECAY_MS": "0", "PREFAULT": "1", "HELPER_THREAD": "1"}
    while refuse(call, call, **{f"HAKMEM_{name}": value for name, value in options.items()}):
        runs, call = runs + 1, call + 1 + call // 12
    assert runs > CALLS_MIN
    tally(runs, "faults")


@pytest.mark.long("5 seconds each; each call of a run, and all after it, refused")
@pytest.mark.parametrize("half", [{}, HALF], ids=["nothing", "half"])
def test_all_calls_from_one_on(half: dict[str, str], refuse: Refuse, tally: Tally) -> None:
    call = 1
    while refuse(call, **half):
        call += 1 + call // 8
    tally(call, "faults")


MODES: list[dict[str, str]] = [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}]


@pytest.mark.long("5 seconds each; calls refused at random; the tests above refuse each one")
@pytest.mark.parametrize("mode", MODES, ids=["default", "hardened", "guarded"])
@pytest.mark.parametrize("half", [{}, HALF], ids=["nothing", "half"])
def test_at_random(half: dict[str, str], mode: dict[str, str], refuse: Refuse, tally: Tally) -> None:
    runs = RANDOM_RUNS if not mode else RANDOM_RUNS // 4
    refused = [refuse(one_in=2 + seed % 12, seed=seed, **half, **mode) for seed in range(runs)]
    assert sum(refused) > runs * 2
    tally(len(refused), "faults")


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize("faults", [{}, OLD_MREMAP], ids=["this kernel", "before Linux 6.17"])
def test_moves(faults: dict[str, str], compile_c: Compile, plain: Run, lib: Path) -> None:
    """A growing block's pages move and keep their content, where the kernel moves one mapping at a time."""
    shim = compile_c(HERE / "faults.c", INCLUDE_TESTS, "-shared", "-fPIC")
    program = compile_c(HERE / "moves.c", INCLUDE_TESTS)
    assert_silent(plain([program], env=faults | taking_calls(shim, lib), timeout=60))
