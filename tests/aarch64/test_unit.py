"""Every C unit test, in a machine whose pages have 4, 16 or 64 KiB (TARGET): real threads and a real kernel.

Those on the fake system choose their pages themselves, of 4 KiB and more: they need a kernel with such.

The model checker is not there: it reads how the compiler instruments x86-64's code and switches stacks by its
C library; what it explores are the orders that the sources allow, which is wider than any processor does."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import target
from kernels.kernels import ROOT

BUILD = ROOT / "build" / "aarch64" / "debug"
TIMEOUT_S = 120
# How much those do that try something at random: here a twentieth, or less.
SHORTER = {"fuzz_sequence": "5", "fuzz_options": "100", "test_concurrency": "5000"}
SHORTER |= {f"test_concurrency.{how}": "2500" for how in ("guarded", "profiled")}

pytestmark = pytest.mark.skipif(not target.NAME, reason="runs in another machine: make test-aarch64")


@dataclass(frozen=True)
class Unit:
    name: str
    command: list[str]
    environment: dict[str, str]
    is_on_the_real_system: bool

    def shorter(self) -> list[str]:
        """The count is the first argument, the inputs are in files."""
        count = SHORTER.get(self.name)
        return [self.command[0], count, *self.command[2:]] if count else self.command


def units() -> list[Unit]:
    """As ctest would run them, without the emulator of programs."""
    if not target.NAME:
        return []
    words = ["ctest", "--show-only=json-v1"]
    said = json.loads(subprocess.run(words, cwd=BUILD, capture_output=True, check=True).stdout)
    found = []
    for test in said["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        at = next(i for i, word in enumerate(test["command"]) if word.startswith(str(BUILD)))
        variables = dict(line.split("=", 1) for line in properties.get("ENVIRONMENT", []))
        is_real = "real_system" in properties.get("LABELS", [])
        found.append(Unit(test["name"], test["command"][at:], variables, is_real))
    return [unit for unit in found if unit.is_on_the_real_system or target.PAGE_BYTES[target.NAME] == 4096]


@pytest.mark.parametrize("unit", units(), ids=lambda unit: unit.name)
def test_unit(unit: Unit, tmp_path: Path) -> None:
    ended = target.run(unit.shorter(), unit.environment, TIMEOUT_S, cwd=tmp_path)
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-4000:]


def test_the_pages_are_those_of_the_target() -> None:
    ended = target.run(["grep", "-m1", "KernelPageSize", "/proc/self/smaps"], {}, TIMEOUT_S)
    assert ended.stdout.split()[1] == str(target.PAGE_BYTES[target.NAME] >> 10)
