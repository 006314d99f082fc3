"""Roots of releases of Debian and Ubuntu, with packages of theirs, that tests run commands in: made by
mmdebstrap, which needs root (the user's), and kept.

`root_with(folder, suite, packages)` returns a Root; `Root.run(...)` runs a command in its copy of the
sources."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mirrors import CannotFetchError, keyring_of, run, source_of, turn
from results import captured

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "/hakmem"  # in the root
ROOT_TIMEOUT_S = 1500
MOUNTS = 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount --rbind /sys "$1/sys"'


@dataclass(frozen=True)
class Root:
    path: Path

    def run(self, *words: str, timeout_s: float = 600, **variables: str) -> subprocess.CompletedProcess[str]:
        """In the sources' folder.  Mounts and processes end with the command."""
        settings = ["HOME=/root", "LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        settings += [f"{name}={value}" for name, value in variables.items()]
        script = f'{MOUNTS}; exec chroot "$@"'
        inside = ["env", "-C", SOURCES, "-i", *settings, *words]
        return captured(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh"),
                *(str(self.path), *inside),
            ],
            timeout=timeout_s,
        )

    def file(self, name: str) -> Path:
        """One below the sources' folder, from outside."""
        return self.path / SOURCES.lstrip("/") / name

    def take_sources(self) -> None:
        """Those of the working tree; what is built of them there stays."""
        listed = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            source, target = ROOT / name, self.file(name)
            if not source.is_file():
                continue
            if not target.exists() or source.read_bytes() != target.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)


def root_with(folder: Path, suite: str, packages: list[str]) -> Root:
    """A root of any packages, in a folder that is kept.  CannotFetchError says why it cannot be had."""
    if os.geteuid() != 0:
        raise CannotFetchError("making a root needs root")
    with turn(folder):
        done = folder / "done"
        if not done.exists() or done.read_text() != " ".join(packages):
            shutil.rmtree(folder / "root", ignore_errors=True)
            _bootstrap(suite, folder, packages)
            done.write_text(" ".join(packages))
        root = Root(folder / "root")
        root.take_sources()
    return root


def _bootstrap(suite: str, folder: Path, packages: list[str]) -> None:
    """The root's own apt installs: this machine's may be older than what the root's settings ask for."""
    root = Root(folder / "root")
    run(
        *("mmdebstrap", "--quiet", "--variant=apt", "--mode=root"),
        *(f"--keyring={keyring_of(suite, folder)}", suite, root.path),
        f"deb {source_of(suite, 'main universe')}",
        timeout_s=ROOT_TIMEOUT_S,
    )
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(Path("/") / name, root.path / name)
    root.file("").mkdir()
    for words in (["update"], ["install", "-y", "--no-install-recommends", *packages], ["clean"]):
        step = root.run("apt-get", "-qq", *words, timeout_s=ROOT_TIMEOUT_S, DEBIAN_FRONTEND="noninteractive")
        if step.returncode != 0:
            raise CannotFetchError(f"apt-get {words[0]} in {suite}: {step.stderr.strip()}")
