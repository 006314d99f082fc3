"""Other versions of glibc, from the mirrors of Debian and Ubuntu: fetched and unpacked into build/glibcs, not
installed.

`fetch(glibc)` returns a Root; `Root.build(...)` links a program with that glibc, to be run on it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mirrors import CannotFetchError, run, turn, unpack
from results import captured

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "glibcs"
PACKAGES = ("libc6", "libc6-dev")
MULTIARCH = "x86_64-linux-gnu"
COMPILE = ["-std=gnu17", "-O1", "-Wall", "-Wextra", "-pthread", "-fno-builtin", "-fno-allocation-dce"]
INCLUDE = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}"]


@dataclass(frozen=True)
class Glibc:
    suite: str  # of Debian or Ubuntu
    version: str
    what_for: str


GLIBCS = (
    Glibc("bullseye", "2.31", "the oldest to be had: threads and dlsym are libraries of their own"),
    Glibc("bionic", "2.27", "older than what the wheel asks for (2.28); what it needs is all there"),
    Glibc("noble", "2.39", "Ubuntu 24.04's"),
    Glibc("trixie", "2.41", "Debian 13's"),
    Glibc("questing", "2.42", "Ubuntu 25.10's"),
    Glibc("sid", "2.43", "the newest; by now it may be newer still"),
)


@dataclass(frozen=True)
class Root:
    """An unpacked libc6 and libc6-dev."""

    path: Path

    @property
    def libraries(self) -> Path:
        """Newer ones have no /lib."""
        folders = (self.path / "lib" / MULTIARCH, self.path / "usr" / "lib" / MULTIARCH)
        return next(folder for folder in folders if (folder / "libc.so.6").exists())

    @property
    def loader(self) -> Path:
        return next(iter(sorted(self.libraries.glob("ld-linux-x86-64.so.2"))))

    def build(self, source: Path, output: Path, *flags: str) -> Path:
        """Compiled with this machine's headers, linked with that glibc's files."""
        part = output.with_suffix(".o")
        run("gcc", *COMPILE, *INCLUDE, *flags, "-c", source, "-o", part)
        self.link(output, [part], *flags)
        return output

    def link(self, output: Path, parts: Iterable[Path], *flags: str) -> None:
        folders = [f"-L{self.libraries}", f"-B{self.path / 'usr' / 'lib' / MULTIARCH}/"]
        run(
            "gcc", f"--sysroot={self.path}", *folders, "-static-libgcc", "-pthread", *parts, *flags,
            f"-Wl,--dynamic-linker={self.loader}",
            f"-Wl,--disable-new-dtags,-rpath={self.libraries}",  # the old tag is also for what is preloaded
            "-o", output,
        )  # fmt: skip

    def version(self) -> str:
        """As it says itself."""
        words = [self.loader, "--library-path", self.libraries, self.libraries / "libc.so.6"]
        said = captured(words, check=True).stdout
        return said.partition("version ")[2].split()[0].rstrip(".")


def make_links_inside(root: Path) -> None:
    """Absolute links lead out of it; newer packages count on /lib being a link to /usr/lib."""
    for name in ("lib", "lib64"):
        if not (root / name).exists() and (root / "usr" / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_absolute():
            link.unlink()
            link.symlink_to(os.path.relpath(root / str(target).lstrip("/"), link.parent))


def fetch(glibc: Glibc) -> Root:
    """Downloaded when it is not there yet; CannotFetchError says why it cannot be had."""
    folder = STORE / glibc.suite
    root, done = Root(folder / "root"), folder / "done"
    with turn(folder):
        if not done.exists():
            unpack(glibc.suite, folder, PACKAGES)
            make_links_inside(root.path)
            if not (root.libraries / "libc.so.6").exists():
                raise CannotFetchError(f"no libc.so.6 in {', '.join(PACKAGES)} of {glibc.suite}")
            done.touch()
    return root
