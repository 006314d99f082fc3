"""Resolves the frames of call stacks in hakmem's reports.

A frame reads `hakmem:     #0 0x5607824683e6 /usr/bin/program+0x13e6 (handle_request+0x46)`: the address, the
file with the offset in it, and the function if the dynamic linker knows it.  All other lines pass unchanged.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from hakmem.target.debug_info import DebugInfo, Place, open_debug_info

FRAME = re.compile(
    r"(?P<head>.*hakmem:\s+#(?P<number>\d+) 0x[0-9a-f]+) "
    r"(?P<module>.+)\+0x(?P<offset>[0-9a-f]+)(?P<symbol> \(.+\+0x[0-9a-f]+\))?"
)
# The stack of a fault starts at the faulting instruction, all others at a return address.
STACK = re.compile(r".*hakmem:   (?P<what>\S+) by thread \d+")
FAULTS = ("read", "write", "access")


class Symbolizer:
    """`complain` is called once for each file that cannot be read."""

    def __init__(
        self, executable: Path | None, libraries: Sequence[Path], complain: Callable[[str], None]
    ) -> None:
        self._executable = executable
        self._libraries = libraries
        self._complain = complain
        self._modules: dict[str, DebugInfo | None] = {}
        self._is_fault = False

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The text with its frames resolved, line by line."""
        for line in lines:
            yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[bytes]:
        text = line.decode(errors="surrogateescape")
        body = text.rstrip("\r\n")
        end = text[len(body) :]
        if stack := STACK.match(body):
            self._is_fault = stack["what"] in FAULTS
        frame = FRAME.fullmatch(body)
        places = self._places(frame) if frame else []
        if frame is None or not places:
            yield line
            return
        where = f"({frame['module']}+0x{frame['offset']})"
        yield f"{frame['head']} {places[0]} {where}{end}".encode(errors="surrogateescape")
        blank = " " * (len(frame["head"]) - len(frame["head"].lstrip()))
        margin = f"{blank}hakmem:        "
        for place in places[1:]:
            yield f"{margin}inlined into {place}{end or chr(10)}".encode(errors="surrogateescape")

    def _places(self, frame: re.Match[str]) -> list[Place]:
        module = self._module(frame["module"])
        if module is None:
            return []
        is_exact = self._is_fault and frame["number"] == "0"
        return module.places(module.first_address + int(frame["offset"], 16) - (0 if is_exact else 1))

    def _module(self, name: str) -> DebugInfo | None:
        if name not in self._modules:
            path = self._find(name)
            self._modules[name] = open_debug_info(path) if path is not None else None
            if self._modules[name] is None and not name.startswith(("linux-vdso", "[")):
                reason = "not found" if path is None else f"{path} is not a program or library"
                self._complain(f"{name}: {reason}; its frames stay unresolved")
        return self._modules[name]

    def _find(self, name: str) -> Path | None:
        """The current place of a file: as given for moved ones; in PATH for a program without a path."""
        base = Path(name).name
        for place in (*([self._executable] if self._executable else []), *self._libraries):
            path = place / base if place.is_dir() else place
            if path.name == base and path.is_file():
                return path
        if "/" not in name:
            found = shutil.which(name)
            return Path(found) if found else None
        return Path(name) if Path(name).is_file() else None
