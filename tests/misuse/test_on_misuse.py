"""HAKMEM_ON_MISUSE: what follows a misuse."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Result

HERE = Path(__file__).resolve().parent
# Each does its wrong once, and then ends.
NAMES = sorted(path.name for path in HERE.iterdir() if path.suffix in {".c", ".cc"})


@pytest.mark.parametrize("name", NAMES)
def test_warn_says_so_and_goes_on(name: str, run_program: Callable[..., Result]) -> None:
    result = run_program(HERE / name, "static", stats=False, env={"HAKMEM_ON_MISUSE": "warn"})
    assert result.returncode in (0, 1), result.stderr  # 1: realloc found nothing
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("hakmem: ") for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_ignore_goes_on_without_a_word(name: str, run_program: Callable[..., Result]) -> None:
    result = run_program(HERE / name, "static", stats=False, env={"HAKMEM_ON_MISUSE": "ignore"})
    assert result.returncode in (0, 1)
    assert not result.stderr


def test_malformed_warns_once_and_aborts(run_program: Callable[..., Result]) -> None:
    environment = {"HAKMEM_ON_MISUSE": "shrug"}
    result = run_program(HERE / "double_free_tiny.c", "static", stats=False, env=environment)
    assert result.returncode == -signal.SIGABRT
    warning, fault = result.stderr.splitlines()
    assert warning == 'hakmem: warning: HAKMEM_ON_MISUSE="shrug" is not abort, warn or ignore; ignored'
    assert fault.startswith("hakmem: double free of ")
