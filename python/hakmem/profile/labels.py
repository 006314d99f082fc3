"""Stacks as frames with names; what has none is its file and the offset in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable
from pathlib import PurePosixPath

from hakmem.profile.model import Frame, Profile, Sample, Stack
from hakmem.profile.short_names import short_name
from hakmem.profile.wrappers import program_frames

# Functions in perf map files of CPython, and what runs them.
PYTHON_PREFIX = "py::"
INTERPRETER = re.compile(r"(lib)?python[0-9.]*[a-z]*(\.so[0-9.]*)?")
DEPTH = 3  # frames that make a site, where nothing else is asked for


class Labels:
    """The frames of a profile's stacks, each worked out once."""

    def __init__(self, profile: Profile) -> None:
        self._names = profile.names
        self._mappings = sorted(profile.mappings, key=lambda mapping: mapping.start)
        self._starts = [mapping.start for mapping in self._mappings]
        self._stacks: dict[Stack, tuple[Frame, ...]] = {}

    def at(self, address: int) -> tuple[Frame, ...]:
        """Inlined calls first; never empty."""
        known = self._names.get(address)
        if known:
            return known
        place = bisect_right(self._starts, address)
        if place and address in self._mappings[place - 1]:
            mapping = self._mappings[place - 1]
            offset = address - mapping.start + mapping.offset
            return (Frame(f"{PurePosixPath(mapping.path).name or 'anonymous'}+{offset:#x}"),)
        return (Frame(f"{address:#x}"),)

    def frames(self, stack: Stack) -> tuple[Frame, ...]:
        """All of a stack, innermost first."""
        if stack not in self._stacks:
            self._stacks[stack] = tuple(frame for address in stack for frame in self.at(address))
        return self._stacks[stack]

    def site(self, stack: Stack, depth: int) -> tuple[Frame, ...]:
        """The innermost frames of the program, without allocators' wrappers, and without the interpreter's if
        there are the functions that it runs."""
        frames = self.frames(stack)
        if any(frame.function.startswith(PYTHON_PREFIX) for frame in frames):
            frames = tuple(frame for at in stack if not self._is_interpreter(at) for frame in self.at(at))
        return tuple(program_frames(frames)[:depth])

    def _is_interpreter(self, address: int) -> bool:
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address not in self._mappings[place]:
            return False
        return INTERPRETER.fullmatch(PurePosixPath(self._mappings[place].path).name) is not None

    def key(self, depth: int) -> SiteKey:
        """Groups samples by their site: the same in another run of the program, wherever it was loaded."""
        return SiteKey(self, depth)


class SiteKey:
    """A key for `site_table`."""

    def __init__(self, labels: Labels, depth: int) -> None:
        self._labels = labels
        self._depth = depth
        self._known: dict[Stack, Hashable] = {}

    def __call__(self, sample: Sample) -> Hashable:
        return self.of(sample.stack)

    def of(self, stack: Stack) -> Hashable:
        known = self._known.get(stack)
        if known is None:
            frames = self._labels.site(stack, self._depth)
            known = self._known[stack] = tuple(frame.function for frame in frames)
        return known


def frame_text(frame: Frame) -> str:
    """`parse (parser.cc:12)`: without the arguments."""
    name = short_name(frame.function)
    if not frame.file:
        return name
    line = f":{frame.line}" if frame.line else ""
    return f"{name} ({PurePosixPath(frame.file).name}{line})"
