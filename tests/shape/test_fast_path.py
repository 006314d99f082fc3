"""The price of the fast paths: frozen in fast_path.golden (aarch64: fast_path_aarch64.golden), bounded, free
of locks and calls."""

import platform
from pathlib import Path

import fast_path
import pytest
from results import one_of_installed

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="built and read on x86-64 only"),
    pytest.mark.alone,  # builds with all processors, in folders that others read
]

BUILDS = fast_path.BUILDS | fast_path.AARCH64_BUILDS
HIT_INSTRUCTIONS_MAX = 25
# A free also compares its block with the one freed before (docs/SAFETY.md), a sized delete the size's class
# with the block's (no slower: docs/decisions/0018).
HIT_INSTRUCTIONS_MAX_OF = {"free": 27, "_ZdlPv": 27, "_ZdlPvm": 34}
# aarch64 computes with nothing in memory, and an address takes two instructions.
MORE_ON_AARCH64 = 7


MORE = pytest.mark.long("compiles the library once more")
compiler = one_of_installed(*(name if name == "gcc" else pytest.param(name, marks=MORE) for name in BUILDS))


@pytest.fixture(scope="module")
def library(compiler: str) -> Path:
    return fast_path.build(compiler)


def golden_lines(compiler: str) -> str:
    """The part of the golden file that is about `compiler`, its heading included."""
    golden = fast_path.GOLDEN if compiler in fast_path.BUILDS else fast_path.GOLDEN_AARCH64
    parts = golden.read_text().split("\n\n")
    return next(part for part in parts if part.startswith(f"{compiler} ")).rstrip("\n") + "\n"


def test_instructions_are_those_of_the_golden_file(compiler: str) -> None:
    golden = golden_lines(compiler)
    version = golden.split()[1]
    if version != fast_path.compiler_version(compiler):
        pytest.skip(f"the golden file was written with {compiler} {version}")
    assert fast_path.describe(compiler) == golden, "if the change is meant: scripts/golden --update"


@pytest.mark.parametrize("name", fast_path.FUNCTIONS)
def test_a_hit_is_short_and_takes_no_lock(library: Path, name: str) -> None:
    function = fast_path.disassemble(library, name)
    path = function.hit_path()
    more = MORE_ON_AARCH64 if "aarch64" in library.parts else 0
    assert 0 < len(path) <= HIT_INSTRUCTIONS_MAX_OF.get(name, HIT_INSTRUCTIONS_MAX) + more
    assert fast_path.mix(path)["calls"] == 0
    assert not [instruction for instruction in function.instructions if instruction.locked]
