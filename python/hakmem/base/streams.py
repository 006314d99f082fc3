"""Standard output and standard error of the tool.

* One that was closed (`>&-`) is reopened so that writing to it fails: a file that is opened later must not
  get its number, and output must not be lost silently.
* A failed write is a StreamError, reported in one sentence like any other error.
* A character that the terminal's encoding lacks is replaced by a similar one."""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from pathlib import Path
from typing import Any, TextIO

from hakmem.base.errors import HakmemError

OUTPUT, ERRORS = 1, 2
FALLBACK = "hakmem.fallback"  # the name of the handler of encoding errors
ALIKE = str.maketrans(
    {
        "…": "...", "–": "-", "—": "-", "·": ".", "→": ">", "×": "x", "≈": "~", "≤": "<", "≥": ">",
        "✓": "+", "✗": "x", "▲": "^", "▼": "v", "↑": "^", "↓": "v", "│": "|", "█": "#", "▉": "#", "▊": "#",
        "▋": "=", "▌": "=", "▍": "-", "▎": "-", "▏": ".", "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=",
        "▆": "=", "▇": "#", "━": "-", "╸": "-", "╺": "-", "•": "*", "“": '"', "”": '"', "←": "<", "±": "+-",
        "�": "?", "µ": "u",
    }
)  # fmt: skip
# Control characters of C0 and C1, which terminals obey, but for tabs and ends of lines.
HARMLESS = dict.fromkeys({*range(32), *range(127, 160)} - {*b"\t\n"})
PLAIN_LOCALES = ("C", "POSIX")


class StreamError(HakmemError):
    """Standard output cannot be written."""


class StandardOutput(io.FileIO):
    """Writes everything, or raises StreamError."""

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        while True:
            try:
                count = super().write(data)
            except OSError as error:
                raise StreamError(f"cannot write to standard output: {error.strerror}") from None
            if count is not None:
                return count
            select.select([], [self], [])  # a terminal that another program made non-blocking


class StandardErrors(io.FileIO):
    """Where errors are reported; a failure here is ignored, as it cannot be reported."""

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        try:
            return super().write(data) or 0
        except OSError:
            return memoryview(data).nbytes


class PlainText(io.TextIOWrapper):
    """Writes ASCII but declares UTF-8: click and rich treat ASCII streams in ways of their own."""

    def write(self, text: str) -> int:
        super().write(text.encode("ascii", FALLBACK).decode("ascii"))
        return len(text)


def fallback(error: UnicodeError) -> tuple[str, int]:
    """A similar character; else its Python escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    alike = wrong.translate(ALIKE)
    return alike.encode("ascii", "backslashreplace").decode("ascii"), error.end


def wants_plain_text(environment: dict[str, str] | os._Environ[str]) -> bool:
    """Does the user name the C locale?  Where no locale is set, as in most containers, Python's own choice is
    better: UTF-8."""
    if environment.get("PYTHONIOENCODING") or environment.get("PYTHONUTF8"):
        return False
    names = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, names), "") in PLAIN_LOCALES


def undo_coercion() -> None:
    """Python sets LC_CTYPE in a plain locale (PEP 538).  Neither the tool nor the programs that it
    launches asked for it."""
    if "LC_CTYPE" not in os.environ:
        return
    try:
        begun_with = Path("/proc/self/environ").read_bytes()
    except OSError:
        return
    if not any(entry.startswith(b"LC_CTYPE=") for entry in begun_with.split(b"\0")):
        del os.environ["LC_CTYPE"]


def reopen_closed() -> None:
    """Reopens each closed standard descriptor so that its use fails: reading from the first, writing to the
    others."""
    for number, mode in ((0, os.O_WRONLY), (OUTPUT, os.O_RDONLY), (ERRORS, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number: this one


def set_up() -> None:
    """Called once, before anything is printed."""
    codecs.register_error(FALLBACK, fallback)
    undo_coercion()
    reopen_closed()
    plain = wants_plain_text(os.environ)
    sys.stdout = _text(StandardOutput(OUTPUT, "wb", closefd=False), sys.__stdout__, plain)
    sys.stderr = _text(StandardErrors(ERRORS, "wb", closefd=False), sys.__stderr__, plain)


def _text(raw: io.FileIO, old: TextIO | None, plain: bool) -> io.TextIOWrapper:
    kind = PlainText if plain else io.TextIOWrapper
    encoding = "utf-8" if plain or old is None else old.encoding
    is_live = raw.isatty() or raw.fileno() == ERRORS
    made = kind(io.BufferedWriter(raw), encoding, FALLBACK, line_buffering=is_live)
    made.mode = "w"  # type: ignore[misc]
    return made


def finish() -> StreamError | None:
    """Flushes standard output.  After an error the rest is discarded, so that the interpreter does not try,
    and complain, again."""
    try:
        sys.stdout.flush()
    except StreamError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, OUTPUT)
        os.close(null)
        return error
    return None
