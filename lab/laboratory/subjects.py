"""What is run: the experiments, and hakmem, glibc and mimalloc as references on the same load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .build import REPOSITORY

EXPERIMENTS = (
    "sharded-mutex",
    "cas-walk",
    "cas-singles",
    "adopt-at-once",
    "threshold-4",
    "threshold-2",
    "reenqueue",
    "adopt-announced",
    "thread-list",
    "magazine-64",
    "global-cache",
    "route-s",
    "route-p",
)
MIMALLOC_FILES = ("libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so")
LIBRARY_FOLDERS = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib*")


@dataclass(frozen=True)
class Subject:
    """A row of the tables."""

    name: str
    strategy: str
    library: Path | None = None  # preloaded

    @property
    def is_reference(self) -> bool:
        """Not an experiment, but an allocator that serves the load's malloc."""
        return self.strategy == "malloc"


def _library(files: tuple[str, ...]) -> Path | None:
    folders = [folder for pattern in LIBRARY_FOLDERS for folder in sorted(Path("/").glob(pattern))]
    found = (folder / file for file in files for folder in folders if (folder / file).exists())
    return next(found, None)


def _references() -> Iterator[Subject]:
    hakmem, mimalloc = REPOSITORY / "build" / "libhakmem.so", _library(MIMALLOC_FILES)
    if hakmem.exists():
        yield Subject("hakmem", "malloc", hakmem)
    yield Subject("glibc", "malloc")
    if mimalloc is not None:
        yield Subject("mimalloc", "malloc", mimalloc)


def find_subjects() -> list[Subject]:
    """All experiments, then the references that this machine has."""
    return [*(Subject(name, name) for name in EXPERIMENTS), *_references()]
