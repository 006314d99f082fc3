"""Debian's kernels, as the machine's own mirror has them: fetched and unpacked into build/kernels, never
installed.

`fetch(kernel)` returns the kernel's image.  apt does it, with lists and a cache of its own: what it downloads
is signed, and the machine's packages are left alone.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "kernels"
# Built for virtual machines: all that a test needs, in a third of the size.
ANY_KERNEL = "linux-image-cloud-amd64"
# The newest have a package for the image alone.
IMAGE_PACKAGES = re.compile(r"^linux-(?:image|binary)-\d\S*$", re.M)
OTHER_RELATIONS = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
TIMEOUT_S = 120


@dataclass(frozen=True)
class Kernel:
    suite: str  # of Debian
    version: str  # what it had when it was put here; it gets updates
    what_for: str


KERNELS = (
    Kernel("bullseye", "5.10", "the oldest that the mirror has: no MADV_POPULATE_WRITE"),
    Kernel("bookworm", "6.1", "Debian 12's: a refused mremap has unmapped its target"),
    Kernel("trixie", "6.12", "Debian 13's, the last without guard regions"),
    Kernel("trixie-backports", "7.3", "the newest"),
)


class CannotFetchError(Exception):
    """The mirror, or apt, does not give the kernel."""


def run(*words: str | Path, cwd: Path | None = None) -> str:
    command = [str(word) for word in words]
    try:
        step = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotFetchError(f"{command[0]}: {error}") from error
    if step.returncode != 0:
        raise CannotFetchError(f"{command[0]}: {(step.stderr or step.stdout).strip()}")
    return step.stdout


def _mirror() -> str:
    """Where the machine's Debian packages come from."""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)")
    for line in listed.splitlines():
        address, _, of = line.partition(" ")
        if of == "Debian Debian":
            return address
    raise CannotFetchError("apt knows no mirror of Debian (apt-get update helps)")


def apt_options(suite: str, folder: Path) -> list[str]:
    """An apt that knows this suite alone."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb {_mirror()} {suite} main\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",  # the folder is ours
        "APT::Architecture": "amd64",
    }
    return [f"-o{name}={value}" for name, value in settings.items()]


def _image_in(folder: Path) -> Path | None:
    found = [*folder.glob("root/boot/vmlinuz-*"), *folder.glob("root/usr/lib/modules/*/vmlinuz")]
    return found[0] if found else None


def fetch(kernel: Kernel) -> Path:
    """The kernel's image, downloaded when it is not there yet; CannotFetchError says why it cannot be had."""
    folder = STORE / kernel.suite
    if image := _image_in(folder):
        return image
    options = apt_options(kernel.suite, folder)
    run("apt-get", *options, "-qq", "--error-on=any", "update")
    relations = [f"--no-{kind}" for kind in OTHER_RELATIONS]
    depended = run("apt-cache", *options, "depends", "--recurse", *relations, ANY_KERNEL)
    wanted = IMAGE_PACKAGES.findall(depended)
    if not wanted:
        raise CannotFetchError(f"{kernel.suite} has no {ANY_KERNEL}")
    run("apt-get", *options, "-q", "download", *wanted, cwd=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", package, folder / "root")
        package.unlink()
    if image := _image_in(folder):
        return image
    raise CannotFetchError(f"no kernel's image in {', '.join(wanted)}")
