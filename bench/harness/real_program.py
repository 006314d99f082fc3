"""A real program as a benchmark: one job, from its start to its end, is one operation."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pwd import struct_passwd
from typing import Any

from .allocators import Allocator, placed_anew
from .bindings import check_bindings, proof_variables
from .build import build_launcher
from .execute import Sample, numbers_of, run_for_result, user_environment
from .paths import OUTPUT, REPOSITORY
from .workload import Length

SHARED_VARIABLES = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}
INPUTS_WRITER = Path(__file__).with_name("real_inputs.py")
PROOF_PART = 10  # the run that proves which library serves does a tenth of the quick work


def find_program(name: str) -> str | None:
    """Where a command lies; absolute names are taken as they are."""
    return shutil.which(name)


def preload_variables(allocator: Allocator) -> dict[str, str]:
    return {"LD_PRELOAD": allocator.preload, **dict(allocator.variables)}


def give(path: Path, user: struct_passwd | None) -> None:
    """Makes the user the owner."""
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


@dataclass(frozen=True)
class RealProgram(ABC):
    """One row of the tables.  `size` is the job's amount of work, in a unit of its own."""

    name: str
    program: str
    package: str
    full: int
    quick: int
    seconds: float = 1.0  # of one full run, about; a quick one takes about a third

    @property
    def runs_max(self) -> int | None:
        return None

    @property
    def together(self) -> bool:
        return False

    @property
    def alternates(self) -> bool:
        return True

    @property
    def is_real(self) -> bool:
        return True

    @property
    def is_case(self) -> bool:
        return False

    @property
    def user(self) -> struct_passwd | None:
        """The user that the program runs as; None: the harness's."""
        return None

    def size(self, length: Length) -> int:
        return self.quick if length.quick else self.full

    def missing(self) -> str:
        found = find_program(self.program) is not None
        return "" if found else f"{self.name}: {self.program} is not installed: Debian package {self.package}"

    def expected_seconds(self, length: Length) -> float:
        return self.seconds / 3 if length.quick else self.seconds

    def prepare(self, length: Length) -> None:
        build_launcher()
        self.write_inputs(self.size(length))
        self.write_inputs(self.proof_size())

    def prove(self, allocator: Allocator) -> None:
        with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as name:
            give(Path(name), self.user)
            self.run(allocator, self.proof_size(), proof_variables(Path(name)))
            check_bindings(Path(name), allocator)

    def timed(self, allocator: Allocator, length: Length) -> Sample:
        return self.run(placed_anew(allocator), self.size(length), {})

    def report(self, hakmem: Allocator, length: Length) -> dict[str, Any] | None:  # noqa: ARG002
        return None

    def proof_size(self) -> int:
        return max(1, self.quick // PROOF_PART)

    @abstractmethod
    def command_text(self, length: Length) -> str: ...

    @abstractmethod
    def write_inputs(self, size: int) -> None: ...

    @abstractmethod
    def run(self, allocator: Allocator, size: int, more_variables: dict[str, str]) -> Sample:
        """The numbers of one run.  Raises RunError."""


@dataclass(frozen=True)
class Job:
    """How to start a command that does its work and ends."""

    command: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    input: Path | None = None
    before: Callable[[Path], None] | None = None  # untimed, before every run, with its folder


@dataclass(frozen=True)
class CommandProgram(RealProgram):
    """A program that ends by itself, run by bench/real/launch.c.  `make` writes the inputs into
    a folder, unless they are there."""

    make: Callable[[Path, int], Job] | None = None

    def command_text(self, length: Length) -> str:
        return shlex.join(_job(self, self.size(length)).command).replace(f"{REPOSITORY}/", "")

    def write_inputs(self, size: int) -> None:
        _job(self, size)

    def run(
        self, allocator: Allocator, size: int, more_variables: dict[str, str], wrapper: tuple[str, ...] = ()
    ) -> Sample:
        """`wrapper`: the words before the command's, of a program that runs it."""
        job, inputs = _job(self, size), _folder(self, size)
        with tempfile.TemporaryDirectory(
            prefix="run-", dir=inputs.parent
        ) as folder:  # its outputs are its own
            for each in inputs.iterdir():
                (Path(folder) / each.name).symlink_to(each)
            if job.before is not None:
                job.before(Path(folder))
            variables = SHARED_VARIABLES | job.variables | preload_variables(allocator) | more_variables
            words = [str(build_launcher()), "-C", folder]
            words += [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
            words += ["-i", str(job.input)] if job.input is not None else []
            program = find_program(job.command[0]) or job.command[0]  # a dynamic linker looks in no PATH
            words += [*allocator.wrapper, *wrapper, program, *job.command[1:]]
            return numbers_of(run_for_result(words, user_environment()))


def _folder(program: RealProgram, size: int) -> Path:
    """Where the inputs lie, named by what wrote them: they stay for the next campaign."""
    writer = hashlib.sha256(INPUTS_WRITER.read_bytes()).hexdigest()[:8]
    return OUTPUT / "real" / writer / f"{program.name.removeprefix('real-')}-{size}"


@cache
def _job(program: CommandProgram, size: int) -> Job:
    """The job, its inputs written if they are not there yet."""
    folder = _folder(program, size)
    folder.mkdir(parents=True, exist_ok=True)
    assert program.make is not None
    return program.make(folder, size)
