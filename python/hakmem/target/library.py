"""Where libhakmem.so is on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from hakmem.base.errors import HakmemError

NAME = "libhakmem.so"
# Where it is installed: the loader's name, which stays through upgrades, then the linker's (libhakmem-dev).
NAMES = (f"{NAME}.0", NAME)
VARIABLE = "HAKMEM_LIBRARY"


def find_library() -> Path:
    """The first of: $HAKMEM_LIBRARY, the wheel's own, the build tree beside this package, the usual
    directories, ldconfig."""
    named = os.environ.get(VARIABLE)
    if named:
        path = Path(named).absolute()
        if not os.path.isfile(path):
            raise HakmemError(f"{VARIABLE} is {named}, which is not a file; correct or unset it")
        return path
    for path in candidates():
        if os.path.isfile(path):
            return path.parent.resolve() / path.name  # not the version's file: it goes with an upgrade
    raise HakmemError(
        f"{NAME} not found; build it (make), install it (sudo make install), "
        f"or set {VARIABLE}=/path/{NAME}"
    )


def beside(library: Path, name: str) -> Path | None:
    """Another file of hakmem's, if it is there: beside the library, or in a folder of its own, as where it is
    installed."""
    places = (library.parent / folder / name for folder in (".", "hakmem", "compat", "hakmem/jemalloc"))
    return next((path for path in places if os.path.isfile(path)), None)


def find_program(name: str) -> Path:
    """A file that is built, and installed, with the library."""
    library = find_library()
    found = beside(library, name)
    if found is None:
        raise HakmemError(f"{name} is not beside {library}: it is built and installed with the library")
    return found


def candidates() -> Iterator[Path]:
    package = Path(__file__).resolve().parents[1]
    yield package / "lib" / NAME  # a wheel's
    checkout = package.parents[1]
    prefix = Path(sys.prefix)
    yield checkout / "build" / NAME
    yield prefix.parent / NAME  # build/venv lies beside the library
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for root in (prefix, Path("/usr/local"), Path("/usr")):
        for folder in ("lib", f"lib/{multiarch}", "lib64"):
            yield from (root / folder / name for name in NAMES)
    yield from _known_to_loader()


def _known_to_loader() -> Iterator[Path]:
    for ldconfig in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if Path(ldconfig).exists():
            step = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
            for line in step.stdout.splitlines():
                if line.strip().startswith(tuple(f"{name} " for name in NAMES)):
                    yield Path(line.rpartition("=> ")[2])
            return
