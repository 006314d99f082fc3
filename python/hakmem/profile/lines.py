"""Lines and inlined frames, from DWARF, by what is installed: `symbolic`, else llvm-symbolizer, else
addr2line of binutils, which each compiler of Debian brings along."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hakmem.profile.model import Frame

Places = dict[int, list[Frame]]  # by address before loading; inlined calls first
LLVM_TIMEOUT_S, ADDR2LINE_TIMEOUT_S = 120.0, 30.0  # the second takes minutes for some large programs
TO_FIX = "install llvm or binutils, or pipx install 'hakmem[lines]'"
CODEGEN_UNIT = re.compile(r"-cgu\.[0-9]+$")
INLINED = "(inlined)"
ARCHITECTURES = {"x86-64": "x86_64", "aarch64": "arm64"}


def lines_of(path: Path, machine: str, addresses: list[int], complain: Callable[[str], None]) -> Places:
    """The places of these addresses of a file with DWARF; mangled names stay so."""
    try:
        found = _by_symbolic(path, machine, addresses)
        if found is None:
            found = _by_llvm(path, addresses)
        if found is None:
            found = _by_addr2line(path, addresses)
        if found is not None:
            return found
        complain(f"{path}: no lines: nothing here reads them; {TO_FIX}")
    except subprocess.TimeoutExpired:
        complain(f"{path}: no lines: it took too long; {TO_FIX}")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        complain(f"{path}: no lines: {error}")
    return {}


def _by_symbolic(path: Path, machine: str, addresses: Iterable[int]) -> Places | None:
    """None if the extra `hakmem[lines]` is not installed, or cannot read the file."""
    try:
        library: Any = importlib.import_module("symbolic.debuginfo")
    except ImportError:
        return None
    try:
        archive = library.Archive.open(str(path))
        cache = archive.get_object(arch=ARCHITECTURES.get(machine, "x86_64")).make_symcache()
        found = {address: cache.lookup(address) for address in addresses}
    except Exception:  # its errors have no documented base; another engine may do
        return None
    return {
        address: [Frame(one.symbol or "", one.full_path or "", one.line or 0) for one in places]
        for address, places in found.items()
        if places
    }


def _by_llvm(path: Path, addresses: list[int]) -> Places | None:
    """None if there is none."""
    program = shutil.which("llvm-symbolizer")
    if program is None:
        return None
    words = [program, "--output-style=JSON", "--inlines", "--no-demangle", f"--obj={path}"]
    places: Places = {}
    for line in _asked(words, addresses, LLVM_TIMEOUT_S):
        answer = json.loads(line)
        for one in answer if isinstance(answer, list) else [answer]:
            frames = [_frame_of(symbol) for symbol in one.get("Symbol", [])]
            places[int(one["Address"], 16)] = [frame for frame in frames if frame.function or frame.file]
    return places


def _frame_of(symbol: dict[str, Any]) -> Frame:
    """Without lines rustc's units of code stand for files: another build has others."""
    file = symbol.get("FileName", "")
    known = "" if CODEGEN_UNIT.search(file) else file
    return Frame(symbol.get("FunctionName", ""), known, int(symbol.get("Line", 0)))


def _by_addr2line(path: Path, addresses: list[int]) -> Places | None:
    """None if there is none.  Its answer: the address, then two lines for each frame."""
    program = shutil.which("addr2line")
    if program is None:
        return None
    places: Places = {}
    at, function = -1, ""
    for line in _asked([program, "-a", "-f", "-i", "-e", str(path)], addresses, ADDR2LINE_TIMEOUT_S):
        if line.startswith("0x"):
            at, function = int(line, 16), ""
        elif not function:
            function = line
        else:
            file, _, number = line.partition(" (discriminator")[0].rpartition(":")
            name, path_of = ("" if part.startswith("?") else part for part in (function, file))
            function = ""
            if name or path_of:
                frame = Frame(name, path_of, int(number) if number.isdigit() else 0)
                places.setdefault(at, []).append(frame)
    return {address: _without_repeated_name(frames) for address, frames in places.items()}


def _without_repeated_name(frames: list[Frame]) -> list[Frame]:
    """addr2line gives an inlined C++ function without a linkage name that of the function around it."""
    inner, outer = frames[0], frames[-1]
    is_repeated = len(frames) > 1 and inner.function == outer.function
    return [replace(inner, function=INLINED), *frames[1:]] if is_repeated else frames


def _asked(words: list[str], addresses: Iterable[int], timeout_s: float) -> list[str]:
    step = subprocess.run(
        words,
        input="".join(f"{address:#x}\n" for address in addresses),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout_s,
        env={name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")},
    )
    return step.stdout.splitlines()
