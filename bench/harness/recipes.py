"""How a peer becomes a library that can be preloaded, from the package that its registry holds.

Everything lies in build/peers: `sources` with the packages as fetched, and a folder for each peer with its
library.  What is there is used again, unless the package's version or the recipe has changed since."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

TIMEOUT_SECONDS = 1800
LINKER = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}.get(
    platform.machine(), "ld.so"
)


class PeerError(Exception):
    """A peer cannot be had; the text says why in a few words."""


class Recipe(Protocol):
    """From a package's folder to a library."""

    @property
    def summary(self) -> str:
        """How it was built, for the tables."""

    @property
    def needed(self) -> tuple[str, ...]:
        """Files that come to lie beside the library, and that it needs."""

    def make(self, source: Path, folder: Path, name: str) -> Path:
        """The library, in `folder`, which is empty.  Raises PeerError."""


class Alone:
    """A library that needs none of its own package."""

    needed: ClassVar[tuple[str, ...]] = ()


def run(command: list[str], folder: Path) -> None:
    """Runs a command; its last words are the reason when it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
        )
    except FileNotFoundError as error:
        raise PeerError(f"{command[0]} is not installed (scripts/install-tools peers)") from error
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{command[0]} was not finished after {TIMEOUT_SECONDS} s") from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        told = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise PeerError(f"{shlex.join(command[:2])}: {told.strip()}")


@dataclass(frozen=True)
class Compiled(Alone):
    """All units are compiled with the same flags and linked.  A package may list more of them in a file."""

    units: tuple[str, ...]
    flags: str
    below: str = ""  # the folder of the package that all paths are relative to
    include: tuple[str, ...] = ()
    listed_in: str = ""
    listed_pattern: str = ""

    @property
    def summary(self) -> str:
        return self.flags

    def _all_units(self, source: Path) -> list[Path]:
        units = [*self.units]
        if self.listed_in:
            units += re.findall(self.listed_pattern, (source / self.listed_in).read_text())
        missing = [unit for unit in units if not (source / unit).is_file()]
        if missing:
            raise PeerError(f"the package has no {missing[0]}")
        return [source / unit for unit in units]

    def make(self, source: Path, folder: Path, name: str) -> Path:
        source = source / self.below
        units = self._all_units(source)
        compiler = os.environ.get("CC", "cc")
        if any(unit.suffix == ".cc" for unit in units):
            compiler = os.environ.get("CXX", "c++")
        flags = [*self.flags.split(), "-fPIC", *(f"-I{source / path}" for path in self.include)]
        objects = [folder / f"{number}.o" for number in range(len(units))]
        with ThreadPoolExecutor(os.cpu_count()) as jobs:
            compile_unit = lambda unit, out: run([compiler, *flags, "-c", str(unit), "-o", str(out)], source)  # noqa: E731
            list(jobs.map(compile_unit, units, objects))
        library = folder / f"lib{name}.so"
        run([compiler, "-shared", "-pthread", "-o", str(library), *map(str, objects), "-ldl"], folder)
        for each in objects:
            each.unlink()
        return library


@dataclass(frozen=True)
class Commands(Alone):
    """The peer's own build system.  {source}, {build} and {jobs} are replaced; `built` lies in {build}."""

    commands: tuple[str, ...]
    built: str
    summary: str
    below: str = ""

    def make(self, source: Path, folder: Path, name: str) -> Path:
        library = folder / f"lib{name}.so"
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as build:
            values = {"source": str(source / self.below), "build": build, "jobs": str(os.cpu_count())}
            for command in self.commands:
                run([word.format(**values) for word in shlex.split(command)], Path(build))
            if not (Path(build) / self.built).is_file():
                raise PeerError(f"its build made no {self.built}")
            shutil.copy(Path(build) / self.built, library)
        return library


@dataclass(frozen=True)
class Unpacked:
    """Files of a wheel, the library to be preloaded first."""

    files: tuple[str, ...]

    @property
    def summary(self) -> str:
        return "as the wheel has it"

    @property
    def needed(self) -> tuple[str, ...]:
        return self.files[1:]

    def make(self, source: Path, folder: Path, name: str) -> Path:  # noqa: ARG002
        wheel = next(source.glob("*.whl"), None)
        if wheel is None:
            raise PeerError("no wheel for this machine")
        with zipfile.ZipFile(wheel) as content:
            for file in self.files:
                path = next((path for path in content.namelist() if path.endswith(f"/{file}")), None)
                if path is None:
                    raise PeerError(f"{wheel.name} has no {file}")
                (folder / file).write_bytes(content.read(path))
        return folder / self.files[0]


@dataclass(frozen=True)
class Found(Alone):
    """A file of an installed package."""

    path: str

    @property
    def summary(self) -> str:
        return "as the package has it"

    def make(self, source: Path, folder: Path, name: str) -> Path:  # noqa: ARG002
        path = Path(self.path.format(machine=platform.machine()))
        if not path.is_file():
            raise PeerError(f"no {path.name} (scripts/install-tools peers)")
        return path


@dataclass(frozen=True)
class Root(Alone):
    """The C library of another release of Debian, and its dynamic linker: programs start through that."""

    suite: str

    @property
    def summary(self) -> str:
        return f"its {LINKER} starts the program"

    def make(self, source: Path, folder: Path, name: str) -> Path:  # noqa: ARG002
        root = folder / "root"
        making = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--include=libc6"]
        run([*making, self.suite, str(root)], folder)
        library = next(root.glob("usr/lib/*-linux-gnu/libc.so.6"), None)
        if library is None or not library.with_name(LINKER).exists():
            raise PeerError(f"{self.suite} has no {LINKER}")
        return library

    @staticmethod
    def wrapper(library: Path) -> tuple[str, ...]:
        """The words before a program's path."""
        return (str(library.with_name(LINKER)), "--library-path", str(library.parent))


MANIFEST = """[package]
name = "sources"
version = "0.0.0"
edition = "2021"
[lib]
path = "none.rs"
[dependencies]
{package} = "={version}"
"""


def _fetch_crate(package: str, version: str, folder: Path) -> None:
    (folder / "none.rs").touch()
    (folder / "Cargo.toml").write_text(MANIFEST.format(package=package, version=version))
    run(["cargo", "vendor", "--quiet", "crates"], folder)


def _fetch_wheel(package: str, version: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--no-deps", "--only-binary", ":all:", "--dest", ".", f"{package}=={version}"], folder)


def fetch(registry: str, package: str, version: str, peers: Path) -> Path:
    """The folder with the content of a package, fetched when it is not there.  Raises PeerError."""
    folder = peers / "sources" / f"{package}-{version}"
    content = folder / "crates" / package if registry == "crates.io" else folder
    if registry == "Debian" or (folder / "complete").exists():
        return content
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (_fetch_crate if registry == "crates.io" else _fetch_wheel)(package, version, folder)
    (folder / "complete").touch()
    return content
