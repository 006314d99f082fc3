"""Compiles the programs of the tests, each once, whichever of several runs of pytest needs it first.

    build/tests/NAME        what a command makes; NAME has a digest of the command
    build/tests/NAME.run    the run that made it last; locked while one is at it

A program may be running while another test needs it: its file is replaced only where it changes.  Without
its file /proc/PID/maps calls it deleted, and a core dump of it has no names."""

import fcntl
import filecmp
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from results import captured

# The workers of one run have this in common.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex


def marked_lines(source: Path) -> dict[str, int]:
    """The numbers of the lines with a comment `// line of NAME`."""
    lines = enumerate(source.read_text().splitlines(), start=1)
    return {found[1]: number for number, text in lines if (found := re.search(r"// line of (\w+)", text))}


class Compiler:
    """The files that one run of pytest has made in a folder."""

    def __init__(self, folder: Path, run: str = RUN) -> None:
        self._folder = folder
        self._run = run
        self._done: dict[tuple[str, ...], Path] = {}

    def make(self, source: Path, suffix: str, *command: str) -> Path:
        """The file that this command, with -o FILE, makes of a source."""
        if command not in self._done:
            digest = hashlib.sha256("\0".join(command).encode()).hexdigest()[:12]
            output = self._folder / f"{source.parent.name}-{source.stem}-{digest}{suffix}"
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._turn(output) as is_made:
                if not is_made:
                    _compile(output, command)
            self._done[command] = output
        return self._done[command]

    @contextmanager
    def _turn(self, output: Path) -> Iterator[bool]:
        """No other run makes it meanwhile.  Whether this run has made it already."""
        with output.with_name(f"{output.name}.run").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            is_made = file.read() == self._run and output.exists()
            file.truncate(0)
            yield is_made
            file.write(self._run)


def _compile(output: Path, command: tuple[str, ...]) -> None:
    """Made beside and renamed: a test may be running the program of an earlier run."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    unfinished = output.with_name(f"{os.getpid()}-{output.name}")
    words = [*command, "-o", str(unfinished)]
    step = captured(words)
    if step.returncode != 0:
        pytest.fail(f"{' '.join(words)}\n{step.stderr}", pytrace=False)
    if output.exists() and filecmp.cmp(unfinished, output, shallow=False):
        unfinished.unlink()
    else:
        unfinished.rename(output)
