"""python/backend.py, which builds a source distribution: where it cannot, it says so, and what is missing."""

import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("setuptools", reason="without a package index the tool is left out (make-tool)")


@pytest.fixture
def backend(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """As it is in a source distribution: the library's sources are beside it."""
    shutil.copy(root / "python" / "backend.py", tmp_path)
    (tmp_path / "library").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "hakmem"\nversion = "0"\n')
    monkeypatch.chdir(tmp_path)  # setuptools writes where it is called, else into this checkout's src
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "backend", raising=False)
    import backend

    monkeypatch.delitem(sys.modules, "backend")
    return backend


@pytest.mark.parametrize(
    ("system", "machine"),
    [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "ppc64le"), ("Linux", "i686")],
)
def test_other_machines_are_refused(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(SystemExit, match=f"Linux on x86-64 and aarch64.*Python on {system} {machine}"):
        backend.build_wheel("nowhere")


def test_a_compiler_is_asked_for(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(SystemExit, match="no C compiler.*apt install gcc libc6-dev"):
        backend.build_wheel("nowhere")


def test_build_tools_come_from_the_index_where_they_are_missing(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    which: Callable[[str], str | None] = {"cmake": None, "ninja": "/usr/bin/ninja"}.get
    monkeypatch.setattr(shutil, "which", which)
    assert "cmake>=3.25" in backend.get_requires_for_build_wheel()
    assert not any(name.startswith("ninja") for name in backend.get_requires_for_build_wheel())


@pytest.mark.parametrize(
    ("said", "is_wanted"),
    [
        ("cmake version 3.22.1", True),
        ("cmake version 3.25.1", False),
        ("cmake version 4.0.2", False),
        ("", True),
    ],
)
def test_an_old_cmake_counts_as_none(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, is_wanted: bool
) -> None:
    cmake = tmp_path / "cmake"
    cmake.write_text(f"#!/bin/sh\necho '{said}'\n")
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert ("cmake>=3.25" in backend.get_requires_for_build_wheel()) == is_wanted


def test_a_checkout_builds_the_tool_alone(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make` has built the library there."""
    monkeypatch.setattr(backend, "SOURCES", Path("nowhere"))
    assert not backend.is_needed()
