"""Errors, each with the exit status that the README documents.

The message is one or two sentences: the fault, then the remedy.
"""

from __future__ import annotations

from enum import IntEnum

DEBUG_VARIABLE = "HAKMEM_TOOL_DEBUG"  # set: errors are printed with their tracebacks


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1  # failure, no hakmem in the target, or a problem that `doctor` found
    USAGE = 2  # invalid command line
    REFUSED = 3  # the kernel denies access to the process
    GONE = 4  # no such process, or it ended while it was being read
    VERSIONS = 5  # the versions of tool and library do not match


class HakmemError(Exception):
    """An error that is reported in one sentence; `exit_code` is the tool's exit status."""

    exit_code: int = ExitCode.FAILED


class CommandError(HakmemError):
    """A program that `hakmem run` cannot launch; with the exit status of shells."""

    NOT_EXECUTABLE, NOT_FOUND = 126, 127

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NotHakmemError(HakmemError):
    """The process or core does not use hakmem."""


class UnreadableError(HakmemError):
    """Memory that is not mapped in the target."""

    def __init__(self, address: int, why: str = "not mapped") -> None:
        super().__init__(f"cannot read the target's memory at {address:#x}: {why}")
        self.address = address


class MissingFileError(UnreadableError):
    """Memory that a core dump omits, and no file on this machine has."""


class DamagedFileError(HakmemError):
    """A file that does not match its own headers."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(
            f"{name} is damaged or truncated: {type(error).__name__}: {error or 'in the headers'}"
        )


class AccessRefusedError(HakmemError):
    """The kernel denies access to the process."""

    exit_code = ExitCode.REFUSED


class ProcessGoneError(HakmemError):
    """No such process, or it has ended."""

    exit_code = ExitCode.GONE


class VersionError(HakmemError):
    """The library uses a layout that this tool does not know."""

    exit_code = ExitCode.VERSIONS
