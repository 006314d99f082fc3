"""A program that has operators new and delete of its own: the forms that it leaves out come to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from modes import assert_clean

if TYPE_CHECKING:
    from conftest import Result

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "own_operators.cc"


@pytest.mark.parametrize("options", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_PROFILE": "64"}], ids=str)
@pytest.mark.parametrize("forms", [[], ["-DARRAYS"], ["-DARRAYS", "-DALIGNED"]], ids="".join)
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "linked"])
def test_all_other_forms_come_to_its_own(
    mode: str, forms: list[str], options: dict[str, str], run_program: Callable[..., Result]
) -> None:
    assert_clean(run_program(PROGRAM, mode, "-Wno-sized-deallocation", *forms, env=options))


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_no_nothrow_form_of_the_c_plus_plus_library(
    mode: str, compile_c: Callable[..., Path], run_program: Callable[..., Result]
) -> None:
    """It is within the program, and not seen by a plug-in: ours goes to the program's plain form at once."""
    plugin = compile_c(HERE / "nothrow_plugin.cc", "-shared", "-fPIC", compiler="gcc")
    flags = ["-Wno-sized-deallocation", "-static-libstdc++", "-rdynamic"]
    assert_clean(run_program(HERE / "nothrow_host.cc", mode, *flags, args=[plugin]))


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_a_library_is_initialised_before_hakmem(
    mode: str, compile_c: Callable[..., Path], run_program: Callable[..., Result]
) -> None:
    """Its blocks are the program's, too: which operators there are is known before the first is made."""
    library = compile_c(HERE / "early_library.cc", "-shared", "-fPIC")
    flags = ["-Wno-sized-deallocation", "-Wl,--no-as-needed", library]
    assert_clean(run_program(PROGRAM, mode, *flags))
