"""A program that has operators new and delete of its own: the forms that it leaves out come to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from modes import assert_clean

if TYPE_CHECKING:
    from conftest import Result

PROGRAM = Path(__file__).resolve().parent / "own_operators.cc"


@pytest.mark.parametrize("options", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_PROFILE": "64"}], ids=str)
@pytest.mark.parametrize("forms", [[], ["-DARRAYS"], ["-DARRAYS", "-DALIGNED"]], ids="".join)
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "linked"])
def test_all_other_forms_come_to_its_own(
    mode: str, forms: list[str], options: dict[str, str], run_program: Callable[..., Result]
) -> None:
    assert_clean(run_program(PROGRAM, mode, "-Wno-sized-deallocation", *forms, env=options))
