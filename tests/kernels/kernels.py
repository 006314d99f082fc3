"""Debian's kernels, as the machine's own mirror has them: fetched and unpacked into build/kernels, never
installed.

`fetch(kernel)` returns the kernel's image."""

import re
from dataclasses import dataclass
from pathlib import Path

from mirrors import CannotFetchError, apt_options, dependencies, run, unpack

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "kernels"
# Built for virtual machines: all that a test needs, in a third of the size.
ANY_KERNEL = "linux-image-cloud-amd64"
# The newest have a package for the image alone.
IMAGE_PACKAGE = re.compile(r"linux-(?:image|binary)-\d\S*")


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
    wanted = [name for name in dependencies(options, ANY_KERNEL) if IMAGE_PACKAGE.fullmatch(name)]
    if not wanted:
        raise CannotFetchError(f"{kernel.suite} has no {ANY_KERNEL}")
    unpack(kernel.suite, folder, wanted)
    if image := _image_in(folder):
        return image
    raise CannotFetchError(f"no kernel's image in {', '.join(wanted)}")
