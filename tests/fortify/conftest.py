"""The library that the tests of this folder preload."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fortify_lib(lib: Path) -> Path:
    return lib.with_name("libhakmem-fortify.so")
