"""The walker, and the program whose heap it knows."""

from pathlib import Path

import pytest
from results import Compile

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def walker(lib: Path) -> Path:
    return lib.with_name("hakmem-walk")


@pytest.fixture(scope="session")
def shadow(compile_c: Compile) -> Path:
    return compile_c(HERE / "shadow.c", "-Wno-deprecated-declarations")
