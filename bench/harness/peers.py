"""Getting today's peers ready: fetched, built, kept; see new_peers.py for which, and recipes.py for how."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from .new_peers import NewPeer
from .paths import PEERS
from .recipes import PeerError, fetch

Tell = Callable[[str], None]


def _stamp(peer: NewPeer) -> str:
    """All that the library depends on."""
    return f"{(peer.registry, peer.package, peer.version, peer.recipe)!r}\n"


def is_ready(peer: NewPeer, peers: Path = PEERS) -> bool:
    """The library is there, built as the table says now."""
    stamp = peers / peer.name / "built"
    return stamp.is_file() and stamp.read_text().startswith(_stamp(peer))


def library_of(peer: NewPeer, tell: Tell | None, peers: Path = PEERS) -> Path:
    """The peer's library, built first when it is not there as the table says; without `tell` it is not.
    Raises PeerError."""
    folder = peers / peer.name
    stamp = folder / "built"
    if is_ready(peer, peers):
        library = Path(stamp.read_text().splitlines()[1])
        if library.is_file():
            return library
    if tell is None:
        raise PeerError("is not built yet: a campaign builds it")
    tell(f"building {peer.name}: {peer.origin}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        library = peer.recipe.make(fetch(peer.registry, peer.package, peer.version, peers), folder, peer.name)
    except (OSError, PeerError) as error:
        raise PeerError(f"could not be built: {error}") from error
    stamp.write_text(f"{_stamp(peer)}{library}\n")
    return library
