"""Requests that nothing can serve are refused at once, and what can be served after giving back still is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Result

HERE = Path(__file__).resolve().parent
LIMITS = [("none", "0"), ("as", "512"), ("data", "512"), ("later", "512"), ("hard", "128")]


@pytest.mark.parametrize("harden", ["0", "1"])
@pytest.mark.parametrize(("limit", "mib"), LIMITS)
@pytest.mark.parametrize("mode", ["linked", "static", "linked-debug"])
def test_impossible(mode: str, limit: str, mib: str, harden: str, run_program: Callable[..., Result]) -> None:
    # Nothing goes back by age, so that whatever does was given under pressure.
    environment = {"HAKMEM_DECAY_MS": "3600000", "HAKMEM_HARDEN": harden}
    if limit == "hard":
        environment["HAKMEM_LIMIT_HARD"] = f"{mib}M"
    result = run_program(HERE / "impossible.c", mode, args=[limit, mib], env=environment, stats=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
