"""Versions of CPython: pyenv's, the distribution's, or the newest Debian's, unpacked into build/pythons."""

from pathlib import Path

from mirrors import CannotFetchError, turn, unpack

STORE = Path(__file__).resolve().parents[2] / "build" / "pythons"
NEWEST = "3.14"
LIBRARIES = ("libc6", "zlib1g", "libexpat1", "libzstd1", "libgcc-s1", "libssl3t64", "libffi8")
RUN = '#!/bin/sh\nexec {lib}/ld-linux-x86-64.so.2 --library-path {lib} {root}/bin/python{version} "$@"\n'


def python_of(version: str) -> Path:
    """CannotFetchError says why it cannot be had."""
    places = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")]
    found = [one for one in (*places, Path(f"/usr/bin/python{version}")) if one.exists()]
    if not found and version != NEWEST:
        raise CannotFetchError(f"not installed: CPython {version}")
    return found[0] if found else _of_debian(version)


def _of_debian(version: str) -> Path:
    """With its own C library."""
    folder = STORE / version
    script = folder / f"python{version}"
    with turn(folder):
        if not script.exists():
            parts = (f"python{version}-minimal", f"libpython{version}-minimal", f"libpython{version}-stdlib")
            root = unpack("sid", folder, (*parts, *LIBRARIES)) / "usr"
            script.touch(0o755)
            script.write_text(RUN.format(lib=root / "lib/x86_64-linux-gnu", root=root, version=version))
    return script
