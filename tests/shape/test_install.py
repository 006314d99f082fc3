"""An installed hakmem is found by pkg-config and by CMake, as a shared and as a static library."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("version.c")
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(hakmem 0.1 REQUIRED)
add_executable(shared version.c)
target_link_libraries(shared PRIVATE hakmem::hakmem)
add_executable(static version.c)
target_link_libraries(static PRIVATE hakmem::static)
"""


def run(*words: str | Path, **environment: str) -> str:
    step = subprocess.run(
        [str(word) for word in words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert step.returncode == 0, step.stdout + step.stderr
    return step.stdout


@pytest.fixture(scope="module")
def installed(lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", lib.parent, "--prefix", prefix)
    return prefix


def test_pkg_config_finds_it(installed: Path, cc: str, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    (file,) = installed.rglob("hakmem.pc")
    flags = run("pkg-config", "--cflags", "--libs", "hakmem", PKG_CONFIG_PATH=str(file.parent)).split()
    run(cc, PROGRAM, "-o", tmp_path / "program", *flags)
    libraries = str(next(installed.rglob("libhakmem.so")).parent)
    assert run(tmp_path / "program", LD_LIBRARY_PATH=libraries).strip()


def test_cmake_finds_it(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    shutil.copy(PROGRAM, tmp_path)
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "shared") == run(tmp_path / "build" / "static")


@pytest.mark.parametrize(
    ("setting", "outcome"), [({"HAK_WERROR": ""}, 0), ({"HAK_WERROR": "ON"}, 1)], ids=["others", "ours"]
)
def test_a_new_warning_fails_our_builds_alone(
    root: Path, tmp_path: Path, setting: dict[str, str], outcome: int
) -> None:
    """A compiler that warns of more than those that we know must build hakmem; .ci/run's must not."""
    run("cmake", "-G", "Ninja", "-S", root, "-B", tmp_path, CFLAGS="-Wtraditional", **setting)
    target = "CMakeFiles/hakmem_objects.dir/src/base/text.c.o"
    step = subprocess.run(["ninja", "-C", tmp_path, target], capture_output=True, text=True, check=False)
    assert "traditional" in step.stdout
    assert step.returncode == outcome
