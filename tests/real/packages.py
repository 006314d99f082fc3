"""The programs under test: which Debian package brings them, and installing what is missing.

`python -m real.packages` installs what is missing."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("packages.txt")
SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
LOCK = Path(__file__).resolve().parents[2] / "build" / "tests-real.lock"
APT_TIMEOUT_S = 600


@dataclass(frozen=True)
class Package:
    """A Debian package and the command, or the pattern of an absolute path, that shows it is there."""

    name: str
    brings: str

    def present(self) -> bool:
        return find(self.brings) is not None


def find(wanted: str) -> Path | None:
    """Where a command, or the file of an absolute pattern, lies: of several versions the last."""
    if wanted.startswith("/"):
        matches = sorted(Path("/").glob(wanted.removeprefix("/")))
        return matches[-1] if matches else None
    path = shutil.which(wanted)
    return None if path is None else Path(path)


def listed() -> list[Package]:
    """The packages of packages.txt."""
    lines = (line.split("#")[0].split() for line in LIST.read_text().splitlines())
    return [Package(*words) for words in lines if words]


@contextmanager
def services_stay_off() -> Iterator[None]:
    """Keeps Debian's packages from starting the servers that they bring; a policy that is there stays."""
    if SERVICE_POLICY.exists():
        yield
        return
    SERVICE_POLICY.write_text(
        "#!/bin/sh\n# Written for a moment by hakmem's tests: start nothing.\nexit 101\n"
    )
    SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        SERVICE_POLICY.unlink()


def install_missing() -> str:
    """Installs the missing packages through apt-get; returns why some are still missing, or ''.

    Whoever comes second waits for the first."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_now()


def install_now() -> str:
    missing = [package.name for package in listed() if not package.present()]
    if not missing:
        return ""
    names = " ".join(missing)
    if shutil.which("apt-get") is None:
        return f"no apt-get here to install {names}"
    if os.geteuid() != 0:
        return f"not root; install them with: apt-get install {names}"
    print(f"\ntests/real: installing through apt-get: {names}", file=sys.__stderr__, flush=True)
    with services_stay_off():
        stale = apt_get(["update"])
        error = apt_get(["install", "-y", "--no-install-recommends", *missing])
    return f"could not install {names}: {error} {stale}".strip() if error else ""


def apt_get(words: list[str]) -> str:
    """Runs apt-get quietly; returns why it failed, or ''."""
    command = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", *words]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    environment.pop("LD_PRELOAD", None)
    try:
        step = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=APT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"apt-get {words[0]} took more than {APT_TIMEOUT_S} s"
    return "" if step.returncode == 0 else f"apt-get {words[0]} failed: {step.stderr.strip()[-500:]}"


if __name__ == "__main__":
    install_missing()
