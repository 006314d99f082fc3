"""hak_calloc's zeros with a hard limit: it counts as much of a range as was asked for, in pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from modes import assert_clean

if TYPE_CHECKING:
    from conftest import Result

PROGRAM = Path(__file__).with_name("hak_calloc_whole.c")


def test_zeros_to_the_end(run_program: Callable[..., Result]) -> None:
    assert_clean(run_program(PROGRAM, "linked", env={"HAKMEM_LIMIT_HARD": "1G"}))
