"""Where the symbols and lines of a mapped file are: in the file, in a separate debug file, or on a debuginfod
server.  A file with another build id is not it: programs are replaced while they run."""

from __future__ import annotations

import os
import re
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hakmem.base.errors import DamagedFileError
from hakmem.profile.model import Mapping
from hakmem.target.elf import ElfFile, open_elf
from hakmem.target.process import DELETED

DOWNLOAD_BYTES_MAX = 2 << 30
PIECE_BYTES = 1 << 20
BUILD_ID = re.compile(r"[0-9a-f]{8,128}")
DEBUG_ROOT = Path("/usr/lib/debug")


@dataclass
class Debuginfod:
    """Servers of debug files; `timeout_s` is for all that is asked of them in one profile together."""

    urls: list[str]
    timeout_s: float = 20.0
    complain: Callable[[str], None] = lambda _text: None
    cache: Path = field(default_factory=lambda: cache_folder())
    _deadline_s: float | None = None

    def fetch(self, build_id: str) -> Path | None:
        """The debug file of a build id, kept for the next time; None if no server has it in time."""
        if not BUILD_ID.fullmatch(build_id):
            return None
        kept = self.cache / build_id / "debuginfo"
        if os.path.isfile(kept):
            return kept
        self._deadline_s = self._deadline_s or time.monotonic() + self.timeout_s
        for url in self.urls:
            if self._download(f"{url.rstrip('/')}/buildid/{build_id}/debuginfo", kept):
                return kept
        return None

    def _download(self, url: str, kept: Path) -> bool:
        left_s = (self._deadline_s or 0.0) - time.monotonic()
        if left_s <= 0:
            return False
        if not url.startswith(("http://", "https://")):
            self.complain(f"{url} is not a debuginfod server: its address begins with http:// or https://")
            return False
        beside = kept.with_name(f".{secrets.token_hex(6)}")
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with urllib.request.urlopen(url, timeout=left_s) as answer, beside.open("wb") as out:
                self._copy(answer.read1, out.write)
            beside.rename(kept)
        except urllib.error.HTTPError as error:
            if error.code != 404:  # it does not have this one
                self.complain(f"{url}: {error.code} {error.reason}")
            return False
        except (OSError, ValueError) as error:
            self.complain(f"{url}: {getattr(error, 'reason', error)}; its functions may stay without names")
            return False
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
        return True

    def _copy(self, read: Callable[[int], bytes], write: Callable[[bytes], int]) -> None:
        seen = 0
        while piece := read(PIECE_BYTES):
            seen += len(piece)
            if seen > DOWNLOAD_BYTES_MAX:
                raise OSError("the file is larger than 2 GiB")
            if time.monotonic() > (self._deadline_s or 0.0):
                raise OSError(f"not complete after {self.timeout_s:g} s")
            write(piece)


def cache_folder() -> Path:
    """The one that elfutils' client uses too."""
    if named := os.environ.get("DEBUGINFOD_CACHE_PATH"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "debuginfod_client"


def servers() -> list[str]:
    """The servers in the environment, as other tools take them."""
    return os.environ.get("DEBUGINFOD_URLS", "").split()


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
