"""Files that are either wholly there or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hakmem.errors import HakmemError

READABLE_BY_ALL = 0o644


def write_atomically(path: Path, text: str) -> None:
    """Writes beside the file and renames: a reader sees the old content or the new one, never a part."""
    folder = path.parent
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
    except OSError as error:
        raise HakmemError(f"cannot write in {folder}: {error.strerror}; name a file elsewhere") from None
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        beside.chmod(READABLE_BY_ALL)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise HakmemError(f"cannot write {path}: {error.strerror}") from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Says before the work, not after it, that the result could not be kept."""
    if not path.parent.is_dir():
        raise HakmemError(f"there is no folder {path.parent}; make it, or name a file elsewhere")
    if not os.access(path.parent, os.W_OK):
        raise HakmemError(f"cannot write in {path.parent}; name a file elsewhere")
