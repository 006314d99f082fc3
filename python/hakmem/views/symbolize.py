"""Resolves the frames of call stacks in hakmem's reports.

A frame reads `hakmem:     #0 0x5607824683e6 /usr/bin/program+0x13e6 (handle_request+0x46)`: the address, the
file with the offset in it, and the function if the dynamic linker knows it.  All other lines pass unchanged.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hakmem.profile.model import Frame
from hakmem.profile.names import Names, Sources, name_file

FRAME = re.compile(
    r"(?P<head>.*hakmem:\s+#(?P<number>\d+) 0x[0-9a-f]+) "
    r"(?P<module>.+)\+0x(?P<offset>[0-9a-f]+)(?P<symbol> \(.+\+0x[0-9a-f]+\))?"
)
# The stack of a fault starts at the faulting instruction, all others at a return address.
STACK = re.compile(r".*hakmem:   (?P<what>\S+) by thread \d+")
FAULTS = ("read", "write", "access")
HELD_MAX = 256  # frames that are named together


@dataclass(frozen=True)
class Held:
    """The line of a frame, and where the function is in its file."""

    line: bytes
    frame: re.Match[str]
    end: str
    offset: int


@dataclass
class Symbolizer:
    """`moved`: files, or folders of them, that have moved; `complain` is called once for each file that
    cannot be read."""

    moved: Sequence[Path]
    complain: Callable[[str], None]
    _unknown: set[str] = field(default_factory=set)
    _is_fault: bool = False

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The text with its frames resolved, line by line; the frames of a stack together."""
        held: list[Held] = []
        for line in lines:
            text = line.decode(errors="surrogateescape")
            body = text.rstrip("\r\n")
            if frame := FRAME.fullmatch(body):
                # A return address is that of the next instruction.
                is_exact = self._is_fault and frame["number"] == "0"
                offset = int(frame["offset"], 16) - (0 if is_exact else 1)
                held.append(Held(line, frame, text[len(body) :], offset))
                if len(held) < HELD_MAX:
                    continue
            yield from self._resolved(held)
            held = []
            if not frame:
                if stack := STACK.match(body):
                    self._is_fault = stack["what"] in FAULTS
                yield line
        yield from self._resolved(held)

    def _resolved(self, held: Sequence[Held]) -> Iterator[bytes]:
        offsets: dict[str, set[int]] = defaultdict(set)
        for one in held:
            offsets[one.frame["module"]].add(one.offset)
        names = {module: self._names(module, sorted(wanted)) for module, wanted in offsets.items()}
        for one in held:
            module, head = one.frame["module"], one.frame["head"]
            places = [_text(frame) for frame in names[module].get(one.offset, ())]
            if not places:
                yield one.line
                continue
            where = f"({module}+0x{one.frame['offset']})"
            yield f"{head} {places[0]} {where}{one.end}".encode(errors="surrogateescape")
            margin = f"{' ' * (len(head) - len(head.lstrip()))}hakmem:        "
            for place in places[1:]:
                yield f"{margin}inlined into {place}{one.end or chr(10)}".encode(errors="surrogateescape")

    def _names(self, module: str, offsets: Sequence[int]) -> Names:
        """A program without a path is looked for in PATH."""
        if module in self._unknown:
            return {}
        path = Path(module if "/" in module else shutil.which(module) or module)
        found = name_file(path, offsets, Sources(complain=self.complain, moved=self.moved))
        if found is None:
            self._unknown.add(module)
            if not module.startswith(("linux-vdso", "[")):
                reason = "not a program or library" if os.path.isfile(path) else "not found"
                self.complain(f"{module}: {reason}; its frames stay unresolved")
        return found or {}


def _text(frame: Frame) -> str:
    return f"{frame.function} at {frame.file}:{frame.line}" if frame.file else frame.function
