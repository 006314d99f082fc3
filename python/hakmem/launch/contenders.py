"""The mallocs that `hakmem replay` compares, by name or file, and the program that replays."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from hakmem.base.errors import DamagedFileError, HakmemError
from hakmem.launch.preload import misfit
from hakmem.launch.preloadable import preloadable
from hakmem.target.elf import open_elf
from hakmem.target.library import find_library

HAKMEM = "hakmem"
C_LIBRARY = ("glibc", "musl")  # without a preload
PEERS = {
    "jemalloc": ("libjemalloc.so*",),
    "mimalloc": ("libmimalloc.so*",),
    "tcmalloc": ("libtcmalloc_minimal.so*", "libtcmalloc.so*"),
}
REPLAYER = "hakmem-replay"
# Options that change time or memory and nothing else.
SETTINGS = {
    "HAKMEM_DECAY_MS": ("0", "100", "300", "5000"),
    "HAKMEM_HELPER_THREAD": ("0", "1"),
    "HAKMEM_BIG_CACHE_BYTES": ("0", "16M", "1G"),
    "HAKMEM_THP": ("0",),
    "HAKMEM_PREFAULT": ("1",),
    "HAKMEM_ROUTE_P": ("0",),
}


class Unusable(HakmemError):
    """Why a contender cannot take part."""


@dataclass(frozen=True)
class Contender:
    name: str
    library: Path | None = None  # None: the C library's own
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        rest = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        preload = {"LD_PRELOAD": str(preloadable(self.library))} if self.library else {}
        return rest | preload | self.variables


def contender(word: str, replayer: Path) -> Contender:
    """Raises Unusable if it is missing, or cannot be preloaded into the program."""
    if word in C_LIBRARY:
        return Contender(word)
    library = find_library() if word == HAKMEM else _library_of(word)
    file, program = open_elf(library), open_elf(replayer)
    if file is None:
        raise Unusable(f"{word}: {library} is not a library")
    try:
        trap = misfit(replayer, program, library) if program else None
        if trap is not None:
            raise Unusable(f"{word} cannot be preloaded: {trap.what}")
        if not file.exports("malloc"):
            raise Unusable(f"{word} cannot be preloaded: {library} does not export malloc")
    except DamagedFileError as error:
        raise Unusable(f"{word} cannot be preloaded: {error}") from None
    return Contender(word if word in (HAKMEM, *PEERS) else library.name, library)


def with_settings(hakmem: Contender) -> list[Contender]:
    """hakmem with each setting; and once more with the defaults: that difference is chance."""
    again = Contender(f"{hakmem.name} again", hakmem.library)
    pairs = ((name, value) for name, values in SETTINGS.items() for value in values)
    return [again, *(Contender(f"{name}={value}", hakmem.library, {name: value}) for name, value in pairs)]


def _library_of(word: str) -> Path:
    if "/" in word or ".so" in word:
        path = Path(word).absolute()
        if not os.path.isfile(path):
            raise Unusable(f"{word}: no such file")
        return path
    if word not in PEERS:
        known = ", ".join((HAKMEM, *C_LIBRARY, *PEERS))
        raise Unusable(f"{word!r} is not known: give the path of its library, or one of {known}")
    for pattern in PEERS[word]:
        for folder in _folders():
            if found := sorted(path for path in folder.glob(pattern) if os.path.isfile(path)):
                return found[0]
    raise Unusable(f"{word} is not installed: {' or '.join(PEERS[word])} is in none of the usual folders")


def _folders() -> list[Path]:
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    named = [Path(name) for name in os.environ.get("LD_LIBRARY_PATH", "").split(":") if name]
    roots = (Path("/usr/local"), Path("/usr"))
    return named + [root / name for root in roots for name in ("lib", f"lib/{multiarch}", "lib64")]


def output_of(program: Path, one: Contender, *words: str | Path) -> str:
    """Raises Unusable if the contender was not preloaded, or the program failed."""
    command = [str(word) for word in (program, *words)]
    step = subprocess.run(
        command, env=one.environment, capture_output=True, text=True, errors="replace", check=False
    )
    said = step.stderr.strip().splitlines()
    if step.returncode < 0:
        raise Unusable(f"{one.name} did not replay it: killed by signal {-step.returncode}")
    if step.returncode or any("cannot be preloaded" in line for line in said):
        raise Unusable(f"{one.name} did not replay it: {said[-1] if said else f'status {step.returncode}'}")
    return step.stdout
