"""What can go wrong, each with the exit status that the README promises.

Every error is one sentence or two: what is wrong, then what to do about it.
"""

from __future__ import annotations

from enum import IntEnum

DEBUG_VARIABLE = "HAKMEM_TOOL_DEBUG"  # set: errors come with their tracebacks


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1  # the tool failed, the target has no hakmem, or `doctor` found a problem
    USAGE = 2  # wrong command line
    REFUSED = 3  # the kernel refuses access to the process
    GONE = 4  # no such process, or it ended while it was being read
    VERSIONS = 5  # tool and library do not understand each other


class HakmemError(Exception):
    """An error that the user is told in one sentence; `exit_code` is the tool's exit status."""

    exit_code: int = ExitCode.FAILED


class CommandError(HakmemError):
    """A program that `hakmem run` cannot launch; with the exit status of shells."""

    NOT_EXECUTABLE, NOT_FOUND = 126, 127

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NotHakmemError(HakmemError):
    """The process, or core, has no hakmem in it."""


class UnreadableError(HakmemError):
    """Memory of the target that is not there."""

    def __init__(self, address: int, why: str = "nothing is mapped there") -> None:
        super().__init__(f"cannot read the target's memory at {address:#x}: {why}")
        self.address = address


class DamagedFileError(HakmemError):
    """A file that is not what its own headers say."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"{name} is damaged or cut off: {type(error).__name__}: {error or 'in its headers'}")


class AccessRefusedError(HakmemError):
    """The kernel does not let us look into the process."""

    exit_code = ExitCode.REFUSED


class ProcessGoneError(HakmemError):
    """No such process; or not any more."""

    exit_code = ExitCode.GONE


class VersionError(HakmemError):
    """The library's figures are laid out in a way that this tool does not know."""

    exit_code = ExitCode.VERSIONS
