#!/usr/bin/env python3
"""Packages of other releases than this machine's, from the mirrors of Debian and Ubuntu: fetched and
unpacked, never installed.

apt does it, with lists and a cache of its own: what it downloads is signed, and the machine's packages are
left alone.  As a program, for tests/fresh/run: `mirrors.py SUITE FOLDER` prints what mmdebstrap makes a root
of that suite from, the keyring first and then the line of the sources.  The machine's own Python runs it, so
it imports nothing but the standard library."""

import fcntl
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

TIMEOUT_S = 120
DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Debian has Ubuntu's keys, signed by its own; not yet in its release 12.
UBUNTU_KEYS = ("trixie", "ubuntu-keyring", "usr/share/keyrings/ubuntu-archive-keyring.gpg")
UBUNTU_MIRROR = "http://archive.ubuntu.com/ubuntu"
UBUNTU_SUITES = ("bionic", "focal", "jammy", "noble", "plucky", "questing", "resolute")


class CannotFetchError(Exception):
    """The mirror, or apt, does not give what was asked for."""


def run(*words: str | Path, cwd: Path | None = None, timeout_s: float = TIMEOUT_S) -> str:
    command = [str(word) for word in words]
    try:
        step = subprocess.run(
            command, cwd=cwd, timeout=timeout_s, capture_output=True, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotFetchError(f"{command[0]}: {error}") from error
    if step.returncode != 0:
        raise CannotFetchError(f"{command[0]}: {(step.stderr or step.stdout).strip()}")
    return step.stdout


def _debian_mirror() -> str:
    """Where the machine's Debian packages come from."""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)")
    for line in listed.splitlines():
        address, _, of = line.partition(" ")
        if of == "Debian Debian":
            return address
    raise CannotFetchError("apt knows no mirror of Debian (apt-get update helps)")


def keyring_of(suite: str, folder: Path) -> Path:
    """The keys that the suite is signed with; Ubuntu's are fetched into `folder`."""
    if suite not in UBUNTU_SUITES:
        return DEBIAN_KEYRING
    keys_suite, package, path = UBUNTU_KEYS
    keys = folder / "keys"
    if not (keys / "root" / path).exists():
        unpack(keys_suite, keys, [package])
    return keys / "root" / path


def source_of(suite: str, components: str = "main") -> str:
    """The address of its mirror, its name and its components, as in sources.list."""
    mirror = UBUNTU_MIRROR if suite in UBUNTU_SUITES else _debian_mirror()
    return f"{mirror} {suite} {components}"


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Another test may want to fill the folder just now."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def apt_options(suite: str, folder: Path, components: str = "main") -> list[str]:
    """An apt that knows this suite alone, and no installed package."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    signed = f"[signed-by={keyring_of(suite, folder)}] " if suite in UBUNTU_SUITES else ""
    sources.write_text(f"deb {signed}{source_of(suite, components)}\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::status": "/dev/null",  # not what is installed here
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",  # the folder is ours
        "APT::Architecture": "amd64",
    }
    return [f"-o{name}={value}" for name, value in settings.items()]


def unpack(suite: str, folder: Path, packages: Iterable[str], components: str = "main") -> Path:
    """Downloads these packages of the suite and unpacks them into folder/root, which it returns."""
    options = apt_options(suite, folder, components)
    run("apt-get", *options, "-qq", "--error-on=any", "update")
    run("apt-get", *options, "-q", "download", *packages, cwd=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", package, folder / "root")
        package.unlink()
    return folder / "root"


def dependencies(options: list[str], package: str) -> list[str]:
    """The package and all that it depends on; nothing that it merely recommends."""
    others = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    relations = [f"--no-{kind}" for kind in others]
    listed = run("apt-cache", *options, "depends", "--recurse", *relations, package)
    return re.findall(r"^(\w\S*)$", listed, re.MULTILINE)


def main(suite: str, folder: Path) -> None:
    components = "main universe" if suite in UBUNTU_SUITES else "main"
    print(keyring_of(suite, folder), f"deb {source_of(suite, components)}", sep="\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]).resolve())
    except CannotFetchError as error:
        sys.exit(f"hakmem: {error}")
