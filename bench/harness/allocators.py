"""The allocators on this machine: glibc's, hakmem's, and the peers from Debian's packages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .paths import HAKMEM_LIBRARY

LIBRARY_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib*")


@dataclass(frozen=True)
class Allocator:
    """An allocator as the harness runs it: preloaded, or glibc's own when there is no library."""

    name: str
    library: Path | None
    package: str = ""

    @property
    def expected_file(self) -> str:
        """The file that must serve malloc and free."""
        return "libc.so.6" if self.library is None else self.library.name

    @property
    def is_peer(self) -> bool:
        """Builds of hakmem (any name that begins so) compete with the peers, not with each other."""
        return not self.name.startswith("hakmem")


@dataclass(frozen=True)
class Peer:
    """Where a peer comes from."""

    name: str
    package: str
    files: tuple[str, ...]


PEERS = (
    Peer("mimalloc", "libmimalloc2.0", ("libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so")),
    Peer("jemalloc", "libjemalloc2", ("libjemalloc.so.2", "libjemalloc.so")),
    Peer("tcmalloc", "libtcmalloc-minimal4", ("libtcmalloc_minimal.so.4", "libtcmalloc_minimal.so")),
    # The proxy replaces malloc and hands on to libtbbmalloc.so.2, which lies beside it.
    Peer("tbbmalloc", "libtbbmalloc2", ("libtbbmalloc_proxy.so.2", "libtbbmalloc_proxy.so")),
)


def _find_library(files: tuple[str, ...]) -> Path | None:
    for file in files:
        for pattern in LIBRARY_FOLDERS:
            for folder in sorted(Path("/").glob(pattern.lstrip("/"))):
                if (folder / file).exists():
                    return folder / file
    return None


def find_allocators(added: dict[str, Path]) -> tuple[list[Allocator], list[str]]:
    """All allocators found and those of `added` (which replace found ones of the same name), and one
    sentence for each that is missing."""
    found = {"hakmem": Allocator("hakmem", HAKMEM_LIBRARY)} if HAKMEM_LIBRARY.exists() else {}
    missing = [] if found or "hakmem" in added else ["hakmem is not built: run `make`"]
    found["glibc"] = Allocator("glibc", None, "libc6")
    for peer in PEERS:
        library = _find_library(peer.files)
        if library is not None:
            found[peer.name] = Allocator(peer.name, library, peer.package)
        elif peer.name not in added:
            missing.append(f"{peer.name} is not installed: Debian package {peer.package}")
    for name, path in added.items():
        found[name] = Allocator(name, path)
    return sorted(found.values(), key=lambda a: a.is_peer), missing  # hakmem first
