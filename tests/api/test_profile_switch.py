"""HAKMEM_PROFILE=never holds for the program itself, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from modes import OWN_API_MODES, assert_clean

if TYPE_CHECKING:
    from conftest import Result

PROGRAM = Path(__file__).with_name("hak_profile.c")


@pytest.mark.parametrize("mode", OWN_API_MODES)
def test_it_is_refused(mode: str, run_program: Callable[..., Result]) -> None:
    assert_clean(run_program(PROGRAM, mode, env={"HAKMEM_PROFILE": "never"}))
