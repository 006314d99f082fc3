"""The first minute of each long target of the Makefile: it starts, as a person starts it, and a case passes.

What takes an hour is run seldom, and what is run seldom was broken for days before anyone saw it."""

import os
import re
from pathlib import Path

import pytest
from results import captured

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 900

# Target → what makes it short; the variables that `make help` names.
SHORT = {
    "fresh": {"FIRST": "1"},
    "soak": {
        "SOAK_MINUTES": "0.1",
        "FUZZ_TOOL_SECONDS": "1",
        "PROFILE_SAMPLES": "20000",
        "PROFILE_INTERVALS": "1000",
        "PROFILE_SWITCHES": "2000",
    },
    "test-aarch64": {"ONLY": "4", "ARGS": "-k 'test_unit[test_bits]'"},
    "test-compilers": {"ONLY": "clang-15", "ARGS": "-k test_the_version_is_what_the_name_says"},
    "test-kernels": {"ONLY": "realloc_content", "ARGS": "-k bookworm"},
    "test-musl": {"ARGS": "-k 'test_it_is_that_musl and 1.2.5'"},
    "test-packages": {"ARGS": "-k test_the_package_is_named_after_the_library"},
    "test-programs": {"ONLY": "^lua$", "ARGS": "-k release"},
    "test-wheels": {"ARGS": "-k 'test_its_name_and_its_bytes and manylinux'"},
}
PASSED = re.compile(r"\b(\d+) passed\b")
CANNOT_BE_HAD = re.compile(r"^SKIPPED .*cannot be had: (.*)$", re.MULTILINE)

pytestmark = pytest.mark.alone


def test_what_they_choose_is_there() -> None:
    """A selection that fits no test fails only after its target was built."""
    chosen = {name for words in SHORT.values() for name in re.findall(r"test_\w+", words.get("ARGS", ""))}
    defined = {
        name
        for module in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", module.read_text(), re.MULTILINE)
    }
    unit_tests = {path.stem for path in (ROOT / "tests/unit").rglob("test_*.c")}
    assert chosen and chosen <= defined | unit_tests


@pytest.mark.long("each target has one part of the whole in the other tests")
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("name", SHORT)
def test_it_starts(name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip(f"make {name} may need root")
    inherited = {
        key: text for key, text in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "ALL"))
    }
    step = captured(
        ["make", "--no-print-directory", name, *(f"{key}={text}" for key, text in SHORT[name].items())],
        cwd=ROOT,
        env=inherited | SHORT[name],
        timeout=TIMEOUT_S,
    )
    said = step.stdout + step.stderr
    assert step.returncode == 0, said[-6000:]
    if missing := CANNOT_BE_HAD.search(said):
        pytest.skip(f"make {name}: {missing[1]}")
    assert name == "fresh" or PASSED.search(said), said[-2000:]
