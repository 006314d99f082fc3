"""Memory runs out: NULL and ENOMEM, nothing harmed, usable afterwards."""

from pathlib import Path

import pytest
from kernel_calls import taking_calls
from modes import INCLUDE_TESTS, assert_silent
from results import Compile, Run

# Without reports: a program first runs as the one that sets the limit.
HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("size", ["16", "64", "1000", "5000", "32768", "100000", "1000000", "3000000"])
@pytest.mark.parametrize(("limit", "mib"), [("as", "64"), ("as", "256"), ("data", "64"), ("data", "256")])
def test_exhaust(limit: str, mib: str, size: str, run_program: Run) -> None:
    assert_silent(run_program(HERE / "exhaust.c", "preload", args=[limit, mib, size], stats=False))


@pytest.mark.long("a second each; other modes of what test_exhaust does", keep=1)
@pytest.mark.parametrize("size", ["64", "5000", "100000", "3000000"])
@pytest.mark.parametrize("mode", ["preload-debug", "static"])
def test_exhaust_in_other_modes(mode: str, size: str, run_program: Run) -> None:
    assert_silent(run_program(HERE / "exhaust.c", mode, args=["as", "256", size], stats=False))


@pytest.mark.parametrize("mib", ["128", "512", "1024", "2048", "8192"])
def test_exhaust_address_space(mib: str, run_program: Run) -> None:
    assert_silent(run_program(HERE / "exhaust_address_space.c", "preload", args=[mib], stats=False))


@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
@pytest.mark.parametrize("name", ["huge_sizes", "exhaust_by_threads", "threads_without_heap"])
def test_program(name: str, mode: str, run_program: Run) -> None:
    assert_silent(run_program(HERE / f"{name}.c", mode, stats=False))


# ---- requests that nothing can serve: refused at once; what giving back can serve is served --------------


LIMITS = [("none", "0"), ("as", "512"), ("data", "512"), ("later", "512"), ("hard", "128")]


def options_of(limit: str, mib: str, harden: str) -> dict[str, str]:
    """Nothing goes back by age, so that whatever does was given under pressure."""
    options = {"HAKMEM_DECAY_MS": "3600000", "HAKMEM_HARDEN": harden}
    return options | ({"HAKMEM_LIMIT_HARD": f"{mib}M"} if limit == "hard" else {})


@pytest.mark.parametrize("harden", ["0", "1"])
@pytest.mark.parametrize(("limit", "mib"), LIMITS)
@pytest.mark.parametrize("mode", ["linked", "static", "linked-debug"])
def test_impossible(mode: str, limit: str, mib: str, harden: str, run_program: Run) -> None:
    environment = options_of(limit, mib, harden)
    assert_silent(run_program(HERE / "impossible.c", mode, args=[limit, mib], env=environment, stats=False))


@pytest.mark.parametrize(("limit", "mib"), LIMITS)
def test_without_guard_regions(limit: str, mib: str, compile_c: Compile, plain: Run, lib: Path) -> None:
    """Before Linux 6.13 hardened mode closes pages in another way, which another limit counts."""
    shim = compile_c(HERE / "absent.c", INCLUDE_TESTS, "-shared", "-fPIC")
    program = compile_c(HERE / "impossible.c", INCLUDE_TESTS, lib, f"-Wl,-rpath,{lib.parent}")
    environment = options_of(limit, mib, "1") | {"ABSENT": "MADV_GUARD_INSTALL"} | taking_calls(shim, lib)
    result = plain([program, limit, mib], env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) > 0, "guard regions were not asked for"
