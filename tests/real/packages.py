"""The programs under test: which Debian package brings them, and installing what is missing.

`python -m real.packages` installs what is missing, and says why something is missing still."""

import fcntl
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from results import captured

LIST = Path(__file__).with_name("packages.txt")
ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "build" / "tests-real.lock"
APT_INSTALL = ROOT / "scripts" / "apt-install"


@dataclass(frozen=True)
class Package:
    """A Debian package, as scripts/apt-install takes it, and the command, or the pattern of an absolute path,
    that shows it is there."""

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
    print("\ntests/real: installing programs to run on hakmem", file=sys.__stderr__, flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    step = captured([APT_INSTALL, *missing], env=environment)
    return "" if step.returncode == 0 else step.stderr.strip()[-700:]


if __name__ == "__main__":
    if why := install_missing():
        print(f"{why}\nhakmem: their tests will be skipped", file=sys.stderr)
