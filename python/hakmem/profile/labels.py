"""Stacks as frames with names; a frame without one is its file and the offset in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePosixPath

from hakmem.profile.model import ByAddress, Frame, Mapping, Profile, Stack, StackKey
from hakmem.profile.short_names import short_name
from hakmem.profile.wrappers import program_frames
from hakmem.target.python_frames import is_place

# Functions in perf map files of CPython, and what runs them.
PYTHON_PREFIX = "py::"
PYTHON_SUFFIX = ".py"
INTERPRETER = re.compile(r"(lib)?python[0-9.]*[a-z]*(\.so[0-9.]*)?")
# Files of JavaScript, those of node itself, and what runs them.
SCRIPT = re.compile(r"(node:|file://|internal/).*|.*\.[cm]?[jt]sx?")
OF_NODE = re.compile(r"(node:|internal/).*")
ENGINE = re.compile(r"node(js)?|electron|(libnode|libv8\w*|libuv)\.so[0-9.]*")
BUILTIN = re.compile(r"(Builtins_|Builtin:|BytecodeHandler:|Stub:).*")  # code of V8's that it copies anywhere
# The libraries of C and C++, by any name of theirs.
RUNTIME = re.compile(
    r"(libc|libm|libdl|librt|libpthread|ld|libstdc\+\+|libc\+\+(abi)?|libgcc_s)(-[\w.-]+|\.musl-\w+)?\.so[0-9.]*"
)
DEPTH = 3  # frames that make a site, where nothing else is asked for


class Labels:
    """The frames of a profile's stacks, each worked out once."""

    def __init__(
        self,
        profile: Profile,
        *,
        with_internals: bool = False,
        has_line: Callable[[Mapping], bool] = lambda _: True,
    ) -> None:
        """`with_internals`: sites begin at malloc's caller, be it of a library of the language.  `has_line`:
        False for files whose lines must not tell sites apart, as those of another build."""
        self._with_internals = with_internals
        self._names = profile.names
        self._mappings = ByAddress(profile.mappings)
        self._has_line = has_line
        self._stacks: dict[Stack, tuple[Frame, ...]] = {}

    def at(self, address: int) -> tuple[Frame, ...]:
        """Inlined calls first; never empty."""
        known, mapping = self._names.get(address), self._mappings.at(address)
        if known:
            if mapping is None or self._has_line(mapping):
                return known
            return tuple(replace(frame, line=0) for frame in known)
        if mapping is not None:
            offset = address - mapping.start + mapping.offset
            return (Frame(f"{PurePosixPath(mapping.path).name or 'anonymous'}+{offset:#x}"),)
        return (Frame(f"{address:#x}"),)

    def frames(self, stack: Stack) -> tuple[Frame, ...]:
        """All of a stack, innermost first."""
        if stack not in self._stacks:
            self._stacks[stack] = tuple(frame for address in self.folded(stack) for frame in self.at(address))
        return self._stacks[stack]

    def folded(self, stack: Stack) -> Stack:
        """Without the interpreter's frames, if it has lines of Python or functions of JavaScript."""
        folds = not self._with_internals and any(is_place(at) or self._is_script(at) for at in stack)
        return self._without_interpreter(stack) if folds else stack

    def _without_interpreter(self, stack: Stack) -> Stack:
        """The functions that it runs stand for it, if the stack has them; of JavaScript those that are not
        node's own."""
        if any(map(self._is_script, stack)):
            stack = tuple(at for at in stack if not self._is_of_engine(at))
        if not any(is_place(at) or self.at(at)[0].function.startswith(PYTHON_PREFIX) for at in stack):
            return stack
        return tuple(at for at in stack if not self._in(at, INTERPRETER))

    def _is_script(self, address: int) -> bool:
        """Is it the program's own JavaScript?"""
        file = self.at(address)[0].file
        return SCRIPT.fullmatch(file) is not None and OF_NODE.fullmatch(file) is None

    def _is_of_engine(self, address: int) -> bool:
        frame = self.at(address)[0]
        is_named = OF_NODE.fullmatch(frame.file) or BUILTIN.fullmatch(frame.function)
        return is_named is not None or self._in(address, ENGINE) is not None

    def site(self, stack: Stack, depth: int) -> tuple[Frame, ...]:
        """The innermost frames from the first that is the program's own, and without the interpreter's if
        there are the functions that it runs."""
        if self._with_internals:
            return self.frames(stack)[:depth]
        stack = self._without_interpreter(stack)
        frames: list[Frame] = []
        is_of_runtime: list[bool] = []
        for at in stack:
            library = self._in(at, RUNTIME)
            found: Sequence[Frame] = self.at(at)
            if library is not None and not self._names.get(at):
                # Inner functions have no symbols, and in another build of the library another address.
                found = [one for one in [Frame(f"{library[1]}.so")] if [one] != frames[-1:]]
            frames += found
            is_of_runtime += [library is not None] * len(found)
        return tuple(program_frames(frames, is_of_runtime)[:depth])

    def _in(self, address: int, files: re.Pattern[str]) -> re.Match[str] | None:
        mapping = self._mappings.at(address)
        return files.fullmatch(PurePosixPath(mapping.path).name) if mapping else None

    def key(self, depth: int) -> StackKey:
        """Groups stacks by their site: the same in another run of the program, wherever it was loaded."""
        return cache(lambda stack: tuple(map(self._key_of, self.site(stack, depth))))

    def _key_of(self, frame: Frame) -> Hashable:
        """A site is a line: one function may ask for memory in several.  Without lines it is a function."""
        return (frame.function, PurePosixPath(frame.file).name, frame.line) if frame.line else frame.function


def caller_text(frame: Frame) -> str:
    """`serve:12`: a caller's name and line; with its file if it is of Python, where names recur in files."""
    if frame.file.endswith(PYTHON_SUFFIX):
        return frame_text(frame)
    name = short_name(frame.function)
    return f"{name}:{frame.line}" if frame.line else name


def frame_text(frame: Frame) -> str:
    """`parse (parser.cc:12)`: without the arguments."""
    return _with_place(short_name(frame.function), frame)


def whole_text(frame: Frame) -> str:
    """The same with the whole name, for files that other tools read."""
    return _with_place(frame.function, frame)


def _with_place(name: str, frame: Frame) -> str:
    if not frame.file:
        return name
    line = f":{frame.line}" if frame.line else ""
    return f"{name} ({PurePosixPath(frame.file).name}{line})"
