"""Requests that nothing can serve are refused at once, and what can be served after giving back still is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import Run

HERE = Path(__file__).resolve().parent
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
    result = run_program(HERE / "impossible.c", mode, args=[limit, mib], env=environment, stats=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(("limit", "mib"), LIMITS)
def test_without_guard_regions(
    limit: str,
    mib: str,
    compile_c: Callable[..., Path],
    plain: Run,
    lib: Path,
) -> None:
    """Before Linux 6.13 hardened mode closes pages in another way, which another limit counts."""
    shim = compile_c(HERE / "absent.c", "-shared", "-fPIC")
    program = compile_c(HERE / "impossible.c", INCLUDE_TESTS, lib, f"-Wl,-rpath,{lib.parent}")
    environment = options_of(limit, mib, "1") | {
        "LD_PRELOAD": f"{shim} {lib}",
        "ABSENT": "MADV_GUARD_INSTALL",
    }
    result = plain([program, limit, mib], env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) > 0, "guard regions were not asked for"
