"""The parts of the machines of tests/aarch64, from Debian's and Ubuntu's mirrors: fetched and unpacked
into build/arm64, not installed.  apt does it, so that what comes is signed.

`root()`             Debian's C library of the unit tests, and a shell
`kernel(page_bytes)` one with pages of this size: its image and the modules that GUEST_MODULES names
"""

import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernels.kernels import ROOT, CannotFetchError, apt_options, run
from mirrors import turn

STORE = ROOT / "build" / "arm64"
# To share folders with a machine; in the order in which they are loaded.
GUEST_MODULES = ("netfs", "9pnet", "9pnet_virtio", "9p")
ZBOOT = b"zimg"  # of an image that unpacks itself, which QEMU 7.2 does not know
UBUNTU_MIRROR = "http://archive.ubuntu.com/ubuntu"
UBUNTU_KEYS = "usr/share/keyrings/ubuntu-archive-keyring.gpg"


@dataclass(frozen=True)
class Suite:
    name: str
    is_ubuntu: bool = False


@dataclass(frozen=True)
class Kernel:
    page_bytes: int
    suite: Suite
    package: str  # depends on the one that has the image


@dataclass(frozen=True)
class Files:
    """Of a kernel."""

    image: Path
    modules: tuple[Path, ...]


TRIXIE = Suite("trixie")
KERNELS = (
    Kernel(4 << 10, TRIXIE, "linux-image-arm64"),
    Kernel(16 << 10, TRIXIE, "linux-image-arm64-16k"),
    Kernel(64 << 10, Suite("resolute", is_ubuntu=True), "linux-image-generic-64k"),
)


class Mirror:
    """An apt that knows one suite, for arm64 alone."""

    def __init__(self, suite: Suite, folder: Path) -> None:
        self._folder = folder
        self._options = [
            *apt_options(suite.name, folder),
            "-oAPT::Architecture=arm64",
            "-oAPT::Architectures::=arm64",
            "-oDir::State::status=/dev/null",  # not what is installed here
        ]
        if suite.is_ubuntu:
            keys = _unpacked("keys", lambda: Mirror(TRIXIE, STORE / "keys").unpack("ubuntu-keyring"))
            line = f"deb [signed-by={keys / UBUNTU_KEYS}] {UBUNTU_MIRROR} {suite.name} main\n"
            (folder / "sources.list").write_text(line)
        run("apt-get", *self._options, "-qq", "--error-on=any", "update")

    def depends(self, package: str) -> list[str]:
        """The packages that it needs, whatever they need."""
        said = run("apt-cache", *self._options, "depends", package)
        return [line.split()[1] for line in said.splitlines() if line.strip().startswith("Depends:")]

    def unpack(self, *packages: str) -> None:
        run("apt-get", *self._options, "-q", "download", *packages, cwd=self._folder)
        for package in self._folder.glob("*.deb"):
            run("dpkg-deb", "-x", package, self._folder / "root")
            package.unlink()


def _unpacked(name: str, fetch: Callable[[], None]) -> Path:
    """The root of STORE/name, which `fetch` fills when it is not complete."""
    folder = STORE / name
    with turn(folder):
        if not (folder / "done").exists():
            fetch()
            (folder / "done").touch()
    return folder / "root"


def root() -> Path:
    names = ("libcmocka-dev", "libcmocka0", "busybox-static")
    return _unpacked("root", lambda: Mirror(Suite("bookworm"), STORE / "root").unpack(*names))


# ---- kernels -----------------------------------------------------------------------------------------------


def _decompressed(content: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        step = subprocess.run(["zstd", "-dcq"], input=content, stdout=subprocess.PIPE, check=True)
        return step.stdout
    return lzma.decompress(content) if suffix == ".xz" else content


def _image(vmlinuz: bytes) -> bytes:
    """The image for a boot loader, from a file that may hold it packed (Linux: libstub/zboot-header.S)."""
    at = vmlinuz.find(ZBOOT)
    if at < 0:
        return vmlinuz
    start = at - 4
    first, size = (int.from_bytes(vmlinuz[at + 4 + 4 * i :][:4], "little") for i in range(2))
    kind = vmlinuz[start + 24 :][:8].partition(b"\0")[0].decode()
    packed = vmlinuz[start + first :][:size]
    if kind != "zstd":
        raise CannotFetchError(f"the kernel is packed by {kind}, which is not understood here")
    return _decompressed(packed, ".zst")


def _keep(folder: Path) -> None:
    """Only the image and a few modules of a kernel's packages: a hundredth."""
    packages, root = folder / "root", folder / "kept"
    root.mkdir()
    (vmlinuz,) = packages.glob("boot/vmlinuz-*")
    (root / "image").write_bytes(_image(vmlinuz.read_bytes()))
    for name in GUEST_MODULES:
        found = [path for end in ("", ".xz", ".zst") for path in packages.rglob(f"{name}.ko{end}")]
        if not found:
            raise CannotFetchError(f"{vmlinuz.name} has no module {name}")
        (root / f"{name}.ko").write_bytes(_decompressed(found[0].read_bytes(), found[0].suffix))
    shutil.rmtree(packages)
    root.rename(packages)


def _fetch_kernel(kernel: Kernel, folder: Path) -> None:
    for old in ("root", "kept"):
        shutil.rmtree(folder / old, ignore_errors=True)
    mirror = Mirror(kernel.suite, folder)
    image = next((name for name in mirror.depends(kernel.package) if name.startswith("linux-")), "")
    if not image:
        raise CannotFetchError(f"{kernel.suite.name} has no {kernel.package}")
    modules = [name for name in mirror.depends(image) if name.startswith("linux-modules-")]
    mirror.unpack(image, *modules)
    _keep(folder)


def kernel(page_bytes: int) -> Files:
    """Downloaded when it is not there yet; CannotFetchError says why it cannot be had."""
    wanted = next(each for each in KERNELS if each.page_bytes == page_bytes)
    folder = STORE / f"kernel-{page_bytes}"
    found = _unpacked(folder.name, lambda: _fetch_kernel(wanted, folder))
    return Files(found / "image", tuple(found / f"{name}.ko" for name in GUEST_MODULES))


if __name__ == "__main__":
    try:
        root()
    except CannotFetchError as error:
        sys.exit(f"hakmem: the unit tests' library for arm64 cannot be had: {error}")
