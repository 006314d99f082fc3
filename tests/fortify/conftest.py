"""Offers run_program to the tests of this folder, and the library that they preload."""

from pathlib import Path

import pytest
from modes import run_program

__all__ = ["run_program"]


@pytest.fixture(scope="session")
def fortify_lib(lib: Path) -> Path:
    return lib.with_name("libhakmem-fortify.so")
