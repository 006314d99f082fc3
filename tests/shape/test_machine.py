"""Machines that hakmem is not for are refused when it is configured, in a sentence."""

from pathlib import Path

import pytest
from results import captured

OURS = {
    "CMAKE_SYSTEM_NAME": "Linux",
    "CMAKE_SIZEOF_VOID_P": "8",
    "CMAKE_C_BYTE_ORDER": "LITTLE_ENDIAN",
    "CMAKE_SYSTEM_PROCESSOR": "x86_64",
}

# A program of 32 bits cannot be linked where only the compiler knows them.
M32 = ["-DCMAKE_C_FLAGS=-m32", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"]


def cmake(*words: str | Path) -> tuple[int, str]:
    """Its status, and what it said as one line."""
    done = captured(["cmake", *words])
    return done.returncode, " ".join(done.stderr.split())


def judged(root: Path, other: dict[str, str]) -> tuple[int, str]:
    """A machine that is ours but for what is `other`."""
    settings = (f"-D{name}={value}" for name, value in (OURS | other).items())
    return cmake(*settings, "-P", root / "cmake" / "machine.cmake")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({}, ""),
        ({"CMAKE_SYSTEM_NAME": "FreeBSD"}, "hakmem is for Linux; this would be built for FreeBSD"),
        ({"CMAKE_SIZEOF_VOID_P": "4"}, "a 32-bit LITTLE_ENDIAN one: x86_64"),
        ({"CMAKE_C_BYTE_ORDER": "BIG_ENDIAN"}, "a 64-bit BIG_ENDIAN one: x86_64"),
    ],
    ids=["ours", "system", "32-bit", "big-endian"],
)
def test_other_machines_are_refused(root: Path, other: dict[str, str], words: str) -> None:
    status, said = judged(root, other)
    assert (status == 0) == (not words)
    assert words in said


@pytest.mark.parametrize("processor", ["x86_64", "aarch64", "arm64", "riscv64"])
def test_what_is_not_tested_is_said(root: Path, processor: str) -> None:
    status, said = judged(root, {"CMAKE_SYSTEM_PROCESSOR": processor})
    assert status == 0, said
    is_warned = f"hakmem is tested on x86-64 and aarch64, not on {processor}" in said
    assert is_warned == (processor == "riscv64"), said


def test_a_32_bit_compiler_is_refused(root: Path, tmp_path: Path) -> None:
    status, said = cmake("-G", "Ninja", "-S", root, "-B", tmp_path, *M32)
    assert status != 0
    assert "hakmem is for 64-bit little-endian processors" in said
