"""Builds the package (PEP 517): setuptools, and in a source distribution the library, too.

A checkout has the library's sources elsewhere, and `make` builds them: the tool is built alone then, and
finds the library where that was installed.  scripts/wheel puts a library into hakmem/lib before."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - all hooks that are not below

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "library"
PLACE = HERE / "hakmem" / "lib"
MACHINES = ("x86_64", "aarch64")
SUPPORTED = "hakmem is for Linux on x86-64 and aarch64, 64-bit, with glibc 2.28 or musl 1.2 or newer"
TOOLS = {"cmake": "cmake>=3.25", "ninja": "ninja"}
CMAKE_OLDEST = (3, 25)
COMPILERS = ("cc", "gcc", "clang")
Settings = dict[str, Any] | None


class Unsupported(SystemExit):
    """Said in one sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(f"hakmem: {why}")


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    found = build_meta.get_requires_for_build_wheel(config_settings)
    return found + [package for tool, package in TOOLS.items() if is_needed() and not is_here(tool)]


def is_here(tool: str) -> bool:
    """And not too old: Ubuntu 22.04 has CMake 3.22."""
    path = shutil.which(tool)
    if path is None or tool != "cmake":
        return path is not None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= CMAKE_OLDEST


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    settings = dict(config_settings or {})
    if is_needed():
        check_machine()
        build_library()
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        settings.setdefault("--build-option", [f"--plat-name={tag}"])
    return str(build_meta.build_wheel(wheel_directory, settings, metadata_directory))


def is_needed() -> bool:
    """Is the library to be built here?"""
    return SOURCES.is_dir() and not PLACE.is_dir()


def check_machine() -> None:
    """The checks of a wheel's tags, for a build without tags."""
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in MACHINES or sys.maxsize < 2**32:
        bits = 64 if sys.maxsize > 2**32 else 32
        raise Unsupported(f"{SUPPORTED}; this is {bits}-bit Python on {system} {machine}")
    if not os.environ.get("CC") and not any(map(shutil.which, COMPILERS)):
        raise Unsupported(
            "no wheel fits this Python, and there is no C compiler to build the library with: install gcc 12 "
            "or clang 14 or newer (Debian: apt install gcc libc6-dev; Alpine: apk add gcc musl-dev "
            "linux-headers), or name one with CC"
        )


def build_library() -> None:
    with tempfile.TemporaryDirectory() as tree:
        run("cmake", "-G", "Ninja", "-S", SOURCES, "-B", tree, "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", tree)
        PLACE.mkdir()
        for library in (*Path(tree).glob("libhakmem*.so"), Path(tree, "compat", "libjemalloc.so.2")):
            shutil.copy(library.resolve(), PLACE / library.name)
        for program in ("hakmem-replay", "hakmem-walk"):
            shutil.copy(Path(tree) / program, PLACE)


def run(*words: str | Path) -> None:
    step = subprocess.run([str(word) for word in words], check=False)
    if step.returncode != 0:
        raise Unsupported(f"{words[0]} failed, see above; {SUPPORTED}")
