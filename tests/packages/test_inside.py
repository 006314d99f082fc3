"""hakmem inside another project (FetchContent): the project gets two libraries and keeps its own settings."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from results import captured

PROGRAM = Path(__file__).parent.with_name("shape") / "version.c"
CONSUMER = Path(__file__).with_name("consumer")
Ran = Callable[..., str]
# What a project has that set nothing.
UNTOUCHED = "own: standard '' flags '-O3 -DNDEBUG' tests '' pic '' lto '' install '' commands ''"
# Settings of a project that must not reach hakmem.
STRANGE = {
    "CMAKE_BUILD_TYPE": "Debug",
    "CMAKE_INTERPROCEDURAL_OPTIMIZATION": "ON",
    "CMAKE_UNITY_BUILD": "ON",
    "CMAKE_C_EXTENSIONS": "OFF",
    "CMAKE_C_FLAGS": "-Wall -Wextra -flto=auto -O0",
    "CMAKE_POLICY_DEFAULT_CMP0069": "NEW",
}


def configure(ran: Ran, root: Path, folder: Path, generator: str = "Ninja", **settings: str) -> str:
    given = {"HAKMEM_SOURCE": str(root), "PROGRAM": str(PROGRAM)} | settings
    words = [f"-D{name}={value}" for name, value in given.items()]
    return ran("cmake", "-G", generator, "-S", CONSUMER, "-B", folder, *words)


def test_the_project_keeps_its_settings(root: Path, ran: Ran, tmp_path: Path) -> None:
    """In a debug build, where hakmem alone has its tests, its assertions and its warnings."""
    assert UNTOUCHED in configure(ran, root, tmp_path, CMAKE_BUILD_TYPE="Debug")
    commands = ran("ninja", "-C", tmp_path, "-t", "commands", "with_hakmem", "with_static").splitlines()
    (own, *_) = (line for line in commands if re.search(r"-c \S*/version\.c", line))
    assert set(re.findall(r"\s(-[^ocIM]\S*)", own)) == {"-g"}
    assert re.findall(r"-I(\S+)", own) + re.findall(r"-isystem (\S+)", own) == [str(root / "include")]
    ours = [line for line in commands if re.search(r"-c \S*/src/heap/\S*\.c", line)]
    assert ours
    for line in ours:
        assert "-DHAK_DEBUG=0" in line
        assert re.findall(r"\s(-O\w)", line)[-1] == "-O2"
        assert "-Wall" not in line
    targets = ran("ninja", "-C", tmp_path, "-t", "targets", "all")
    assert re.search(r"^with_static: ", targets, re.MULTILINE)
    assert not re.search(r"^(\S*/)?(test_|model_|fuzz_)\w+: ", targets, re.MULTILINE)


def test_only_what_is_linked_is_built(root: Path, ran: Ran, tmp_path: Path) -> None:
    configure(ran, root, tmp_path)
    wanted = ran("ninja", "-C", tmp_path, "-t", "inputs", "all")
    assert "libhakmem.so" in wanted
    assert "fortify" not in wanted


@pytest.mark.skipif(not os.environ.get("PACKAGES"), reason="builds hakmem twice: make test-packages")
@pytest.mark.parametrize(
    ("generator", "settings"), [("Ninja", STRANGE), ("Unix Makefiles", {})], ids=["strange", "make"]
)
def test_it_is_built_there(
    root: Path, ran: Ran, tmp_path: Path, generator: str, settings: dict[str, str]
) -> None:
    configure(ran, root, tmp_path, generator, **settings)
    said = ran("cmake", "--build", tmp_path, "-j2")
    assert "warning" not in said
    assert ran(tmp_path / "with_hakmem") == ran(tmp_path / "with_static")
    report = tmp_path / "report"
    ran(tmp_path / "with_static", HAKMEM_STATS=f"text:{report}")
    assert report.read_text()


@pytest.mark.parametrize(
    ("setting", "outcome"), [({"HAK_WERROR": ""}, 0), ({"HAK_WERROR": "ON"}, 1)], ids=["others", "ours"]
)
def test_a_new_warning_fails_our_builds_alone(
    root: Path, ran: Ran, tmp_path: Path, setting: dict[str, str], outcome: int
) -> None:
    """A compiler that warns of more than those that we know must build hakmem; .ci/run's must not."""
    ran("cmake", "-G", "Ninja", "-S", root, "-B", tmp_path, CFLAGS="-Wtraditional", **setting)
    target = "CMakeFiles/hakmem_objects.dir/src/base/text.c.o"
    step = captured(["ninja", "-C", tmp_path, target])
    assert "traditional" in step.stdout
    assert step.returncode == outcome
