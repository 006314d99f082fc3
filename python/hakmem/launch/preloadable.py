"""A path that LD_PRELOAD can carry.

A space or a colon ends a name there, a dollar sign begins a token of the loader's, and nothing can be quoted.
A folder of such a name (`My Projects`) is reached by a link to it, below /run, /run/user/UID or /tmp.
Only the standard library is used: `make run` needs it before anything is installed.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from hakmem.base.errors import HakmemError

# Glibc's loader ends a name at a space or a colon, musl's at any white space, too.
NOT_CARRIED = re.compile(r"[\s:$]")
NAME_CHARACTERS = 16


def is_preloadable(library: Path) -> bool:
    return NOT_CARRIED.search(str(library)) is None


def preloadable(library: Path) -> Path:
    """`library`, or the same file by a path that LD_PRELOAD can carry.

    The link stays: programs that are started later inherit the variable.  Raises HakmemError."""
    if is_preloadable(library):
        return library
    if is_preloadable(Path(library.name)):
        for place in _places():
            try:
                return _link(place, library.parent) / library.name
            except OSError:
                continue
    raise HakmemError(
        f"{library} cannot be preloaded: LD_PRELOAD has no way to write a space, colon or dollar sign, and "
        "no link to that folder can be made in /tmp; install hakmem into another folder"
    )


def _places() -> Iterator[Path]:
    """Programs that root starts become other users: they must reach it, too."""
    own = "/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "")
    for name in (own, tempfile.gettempdir(), "/tmp"):
        if name.startswith("/") and is_preloadable(Path(name)):
            yield Path(name)


def _link(place: Path, folder: Path) -> Path:
    """A link to `folder`, always of the same name, which no other user can replace."""
    user = os.geteuid()
    own = place / f"hakmem-{user}"
    own.mkdir(exist_ok=True)
    found = own.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user:
        raise PermissionError(f"{own} is another's")
    own.chmod(0o755)
    link = own / sha256(os.fsencode(folder)).hexdigest()[:NAME_CHARACTERS]
    if not (link.is_symlink() and link.readlink() == folder):
        new = link.with_name(f"{link.name}.{os.getpid()}")
        new.symlink_to(folder)
        new.replace(link)
    return link


def preload_list(libraries: list[Path], present: str) -> str:
    """hakmem first, then the libraries of LD_PRELOAD, without other versions of hakmem (libhakmem.so.0)."""
    ours = {_stem(path) for path in libraries}
    others = [name for name in present.replace(":", " ").split() if _stem(Path(name)) not in ours]
    return ":".join([*(str(preloadable(path)) for path in libraries), *others])


def _stem(path: Path) -> str:
    return path.name.partition(".so")[0]
