"""Where the symbols and lines of a mapped file are: in the file, in a separate debug file, or on a debuginfod
server.  A file with another build id is not it: programs are replaced while they run."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.errors import DamagedFileError
from hakmem.profile.model import Mapping
from hakmem.target.elf import ElfFile, open_elf
from hakmem.target.process import DELETED

BUILD_ID = re.compile(r"[0-9a-f]{8,128}")
DEBUG_ROOT = Path("/usr/lib/debug")
DEBUGINFOD = "debuginfod-find"
MISSING = f"{DEBUGINFOD} is missing: install debuginfod (Debian) or elfutils-debuginfod-client (Fedora)"
NOT_THERE = "No such file"  # no server has it


@dataclass
class Debuginfod:
    """elfutils' client of debug file servers, `left_s` for all files of one profile together."""

    complain: Callable[[str], None]
    left_s: float = 20.0

    def fetch(self, build_id: str) -> Path | None:
        """The debug file of a build id; None if no server has it in time."""
        if self.left_s <= 0:
            return None
        words, variables = [DEBUGINFOD, "debuginfo", build_id], os.environ | {"LC_ALL": "C"}
        began_s = time.monotonic()
        try:
            step = subprocess.run(
                words, env=variables, capture_output=True, text=True, check=False, timeout=self.left_s
            )
        except FileNotFoundError:
            trouble = MISSING
        except subprocess.TimeoutExpired:
            trouble = "the servers in DEBUGINFOD_URLS do not answer in time"
        else:
            self.left_s -= time.monotonic() - began_s
            if not step.returncode:
                return Path(step.stdout.strip())
            if NOT_THERE in step.stderr:
                return None
            trouble = step.stderr.strip()
        self.complain(f"{trouble}; functions may stay without names")
        self.left_s = 0
        return None


@dataclass(frozen=True)
class FileToName:
    """One mapped file: where its symbols are, and where its lines."""

    file: ElfFile | None  # mapped now or before; None if it is not here
    debug: ElfFile | None  # its separate debug file

    @property
    def sources(self) -> Iterator[ElfFile]:
        """Files with symbols, the more complete one first."""
        yield from (one for one in (self.debug, self.file) if one is not None)


def find(
    mapping: Mapping, root: Path | None, debuginfod: Debuginfod | None, moved: Sequence[Path] = ()
) -> FileToName:
    """`root` is the file system of the process, /proc/PID/root; None: this one's.  `moved`: where else the
    file may be, under its name."""
    path = mapping.path.removesuffix(DELETED)
    base = Path(path).name
    places = [place / base if place.is_dir() else place for place in moved]
    places = [place for place in places if place.name == base]
    if root is not None and path.startswith("/"):
        places.append(root / path.lstrip("/"))
    file = next(filter(None, (_same(place, mapping.build_id) for place in (*places, Path(path)))), None)
    debug = None
    build_id = mapping.build_id or (file.build_id if file is not None else "") or ""
    if BUILD_ID.fullmatch(build_id):
        for top in dict.fromkeys((*([root] if root else []), Path("/"))):
            folder = top / str(DEBUG_ROOT).lstrip("/") / ".build-id"
            debug = debug or _same(folder / build_id[:2] / f"{build_id[2:]}.debug", build_id)
    if debug is None and file is not None:
        debug = _linked(file)
    if debug is None and BUILD_ID.fullmatch(build_id):
        has_symbols = file is not None and file.has_section(".symtab")
        if not has_symbols and debuginfod is not None:
            fetched = debuginfod.fetch(build_id)
            debug = _same(fetched, build_id) if fetched is not None else None
    return FileToName(file, debug)


def _linked(file: ElfFile) -> ElfFile | None:
    """By its .gnu_debuglink, where debuggers look for it."""
    name = (file.section(".gnu_debuglink") or b"").split(b"\0")[0].decode(errors="surrogateescape")
    path = Path(file.name)
    folders = (path.parent, path.parent / ".debug", DEBUG_ROOT / str(path.parent).lstrip("/"))
    places = (folder / name for folder in folders if name and folder / name != path)
    return next(filter(None, (_same(place, file.build_id or "") for place in places)), None)


def _same(path: Path, build_id: str) -> ElfFile | None:
    """The file if it is the one; without a build id to compare, by its name."""
    try:
        file = open_elf(path) if path.is_file() else None
        if file is None or not file.is_ours:
            return None
        return file if not build_id or file.build_id == build_id else None
    except (OSError, DamagedFileError):
        return None
