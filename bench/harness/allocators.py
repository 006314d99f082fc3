"""The allocators on this machine: glibc's, hakmem's, and the peers: Debian's packages, or today's."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from .new_peers import NEW_PEERS, NewPeer
from .paths import HAKMEM_LIBRARY, OUTPUT
from .peers import library_of
from .recipes import PeerError, Root

LIBRARY_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib*")


@dataclass(frozen=True)
class Allocator:
    """An allocator as the harness runs it: preloaded, or glibc's own when there is no library."""

    name: str
    library: Path | None
    package: str = ""  # Debian's, whose version is shown
    origin: str = ""  # version and flags, where that is known without asking
    variables: tuple[tuple[str, str], ...] = ()  # of the environment, beside the preload
    needed: tuple[str, ...] = ()  # files beside the library, which the loader does not look for there
    wrapper: tuple[str, ...] = ()  # the words before a program's command, of one that runs it

    @property
    def expected_file(self) -> str:
        """The file that must serve malloc and free."""
        return "libc.so.6" if self.library is None else self.library.name

    @property
    def preload(self) -> str:
        """As LD_PRELOAD has it; glibc is named too: Debian links redis-server with jemalloc."""
        if self.library is None:
            return self.expected_file
        return ":".join(str(self.library.with_name(name)) for name in (self.library.name, *self.needed))

    @property
    def is_peer(self) -> bool:
        """Builds of hakmem (any name that begins so) compete with the peers, not with each other."""
        return not self.name.startswith("hakmem")


GLIBC = Allocator("glibc", None, "libc6")


def copy_anew(source: Path, target: Path) -> Path:
    """Into a file of its own: a process that has the old one keeps that.  Returns the target."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.{threading.get_native_id()}")  # pairs are made side by side
    return Path(shutil.copy(source, new)).replace(target)


def placed_anew(allocator: Allocator) -> Allocator:
    """With a new copy of its library, in other pages of the file cache: some make random_mixed 1.5 times as
    slow, in all runs with that file."""
    if allocator.library is None:
        return allocator
    folder = OUTPUT / "placed" / allocator.name
    for name in (allocator.library.name, *allocator.needed):
        copy_anew(allocator.library.with_name(name), folder / name)
    return replace(allocator, library=folder / allocator.library.name)


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


DEBIAN, NEW = PEER_KINDS = ("debian", "new")
Found = tuple[dict[str, Allocator], list[str]]


def _find_packaged(names: Collection[str]) -> Found:
    """Debian's packages of the peers, and one sentence for each that is missing."""
    found, missing = {}, []
    for peer in (peer for peer in PEERS if peer.name in names):
        library = _find_library(peer.files)
        if library is not None:
            found[peer.name] = Allocator(peer.name, library, peer.package)
        else:
            missing.append(f"{peer.name} is not installed: Debian package {peer.package}")
    return found, missing


def _make_new(names: Collection[str], library: Callable[[NewPeer], Path]) -> Found:
    """Today's peers, built when they are not there; a peer that cannot be built holds up no other."""
    found, missing = {}, []
    for peer in (peer for peer in NEW_PEERS if peer.name in names):
        try:
            found[peer.name] = _new_allocator(peer, library(peer))
        except PeerError as error:
            missing.append(f"{peer.name} {error}")
    return found, missing


def _new_allocator(peer: NewPeer, library: Path) -> Allocator:
    if isinstance(peer.recipe, Root):
        return Allocator(peer.name, None, origin=peer.origin, wrapper=peer.recipe.wrapper(library))
    package = peer.package if peer.registry == "Debian" else ""
    return Allocator(peer.name, library, package, peer.origin, peer.variables, peer.recipe.needed)


def peer_names(kind: str) -> list[str]:
    """The names of all peers of a kind but glibc's malloc."""
    return [peer.name for peer in (PEERS if kind == DEBIAN else NEW_PEERS)]


def find_allocators(
    added: dict[str, Path],
    kind: str = DEBIAN,
    wanted: Collection[str] = (),
    tell: Callable[[str], None] | None = None,
) -> tuple[list[Allocator], list[str]]:
    """All allocators found and those of `added` (which replace found ones of the same name), and one
    sentence for each that is missing.  If any are `wanted`, no other peers are looked for.  Nothing
    is built without `tell`, which is called with a line before each."""
    found = {"hakmem": Allocator("hakmem", HAKMEM_LIBRARY)} if HAKMEM_LIBRARY.exists() else {}
    missing = [] if found or "hakmem" in added else ["hakmem is not built: run `make`"]
    found["glibc"] = GLIBC
    names = [name for name in peer_names(kind) if name not in added and (not wanted or name in wanted)]
    if kind == DEBIAN:
        peers, without = _find_packaged(names)
    else:
        peers, without = _make_new(names, lambda peer: library_of(peer, tell))
    found |= peers
    missing += without
    for name, path in added.items():
        found[name] = Allocator(name, path)
    return sorted(found.values(), key=lambda a: a.is_peer), missing  # hakmem first
