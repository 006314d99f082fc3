"""Lines and inlined frames, from DWARF, by what is installed: `symbolic`, else llvm-symbolizer, else our own
reader for small files.  Never binutils' addr2line: it takes minutes for a large program."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hakmem.profile.model import Frame
from hakmem.target.debug_info import open_debug_info

Places = dict[int, list[Frame]]  # by address before loading; inlined calls first
LLVM_TIMEOUT_S = 120.0
OWN_READER_BYTES_MAX = 8 << 20
CODEGEN_UNIT = re.compile(r"-cgu\.[0-9]+$")
ARCHITECTURES = {"EM_X86_64": "x86_64", "EM_AARCH64": "arm64"}


def lines_of(path: Path, machine: str, addresses: list[int], complain: Callable[[str], None]) -> Places:
    """The places of these addresses of a file with DWARF; mangled names stay so."""
    try:
        found = _by_symbolic(path, machine, addresses)
        if found is None:
            found = _by_llvm(path, addresses)
        return found if found is not None else _by_ourselves(path, addresses, complain)
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
    step = subprocess.run(
        [program, "--output-style=JSON", "--inlines", "--no-demangle", f"--obj={path}"],
        input="".join(f"{address:#x}\n" for address in addresses),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=LLVM_TIMEOUT_S,
        env={name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")},
    )
    places: Places = {}
    for line in step.stdout.splitlines():
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


def _by_ourselves(path: Path, addresses: Iterable[int], complain: Callable[[str], None]) -> Places:
    if path.stat().st_size > OWN_READER_BYTES_MAX:
        complain(f"{path} is large: for lines install llvm-symbolizer, or pipx install 'hakmem[lines]'")
        return {}
    info = open_debug_info(path)
    if info is None:
        return {}
    return {
        address: [Frame(one.function or "", one.file or "", one.line or 0) for one in info.places(address)]
        for address in addresses
    }
