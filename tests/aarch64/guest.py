"""A machine of another architecture, emulated by QEMU, that runs programs for the tests of this one.

`Guest(page_bytes)` boots one; `guest.run(cmd, env, timeout, stdin, cwd)` runs a program in it.  It sees the
project's folder where it is here, so that programs, their reports and what they read and write have the same
names on both sides; the rest of its root is what is written here: the C library, and busybox.  Started by
init, agent.c takes the orders.
"""

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aarch64 import packages
from kernels.kernels import ROOT, run

HERE = Path(__file__).resolve().parent
COMPILER = "aarch64-linux-gnu-gcc"
QEMU = "qemu-system-aarch64"
LIBRARIES = Path("/usr/aarch64-linux-gnu/lib")
LIBRARY_NAMES = ("ld-linux-aarch64", "libc", "libm", "libdl", "librt", "libpthread", "libgcc_s", "libstdc++")
MEMORY_MIB = 3072
# An emulated processor, and a machine that may be busy with other tests.
BOOT_TIMEOUT_S = 180
ANSWER_TIMEOUT_S = 60  # after the end of what was asked for
LOG_LINES = 15
COMMAND_LINE = "console=ttyAMA0 quiet panic=-1 mitigations=off transparent_hugepage=madvise"


@dataclass(frozen=True)
class Ended:
    """How a program ended, as subprocess says it; None when it ran past its time and was killed."""

    returncode: int | None
    stdout: str
    stderr: str


class GuestError(Exception):
    """The machine did not boot, or does not answer."""


def missing() -> str:
    """The tools that are not there."""
    tools = (COMPILER, QEMU, "cpio", "zstd")
    return " ".join(tool for tool in tools if shutil.which(tool) is None)


def _libraries() -> Iterator[Path]:
    for name in LIBRARY_NAMES:
        yield from LIBRARIES.glob(f"{name}.so.[0-9]")


def _write_root(folder: Path, shares: Mapping[str, Path], modules: Iterable[Path]) -> None:
    for name in ("bin", "lib", "modules"):
        (folder / name).mkdir(parents=True)
    for library in _libraries():
        shutil.copy(library, folder / "lib")
    shutil.copy(next(packages.root().glob("*bin/busybox")), folder / "bin" / "busybox")
    for number, module in enumerate(modules):
        shutil.copy(module, folder / "modules" / f"{number}.ko")
    (folder / "shares").write_text("".join(f"{tag} {path}\n" for tag, path in shares.items()))
    shutil.copy(HERE / "init", folder / "init")
    words = [COMPILER, "-std=gnu17", "-O1", "-static", "-D_GNU_SOURCE", HERE / "agent.c"]
    run(*words, "-o", folder / "bin" / "agent")


def _pack(folder: Path, output: Path) -> None:
    """As the kernel unpacks it."""
    names = "".join(f"{path.relative_to(folder)}\n" for path in sorted(folder.rglob("*")))
    with output.open("wb") as archive:
        words = ["cpio", "--create", "--format=newc", "--quiet", "--owner=0:0"]
        subprocess.run(words, cwd=folder, input=names.encode(), stdout=archive, check=True)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _returncode(status: int) -> int | None:
    if status == -1:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class Guest:
    def __init__(self, page_bytes: int, processors: int = 2) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="machine-"))  # within the project's (tests/target.py)
        self._numbers = itertools.count(1)
        kernel = packages.kernel(page_bytes)
        shares = {"project": ROOT}
        _write_root(self._folder / "root", shares, kernel.modules)
        _pack(self._folder / "root", self._folder / "initramfs")
        self._qemu = self._start(kernel.image, shares, processors)
        self._port = self._connected()
        self._answers = self._port.makefile("r")
        self._answer("ready", time.monotonic() + BOOT_TIMEOUT_S)

    def _start(self, image: Path, shares: Mapping[str, Path], processors: int) -> subprocess.Popen[bytes]:
        words: list[str | Path] = ["setpriv", "--pdeathsig", "KILL", QEMU, "-M", "virt,gic-version=3"]
        words += ["-cpu", "max,pauth-impdef=on"]
        words += ["-accel", "tcg,thread=multi", "-smp", str(processors), "-m", str(MEMORY_MIB)]
        words += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{self._folder}/console"]
        words += ["-kernel", image, "-initrd", self._folder / "initramfs", "-append", COMMAND_LINE]
        words += ["-device", "virtio-serial-pci", "-chardev"]
        words += ["socket,id=port,path=port,server=on,wait=off"]
        words += ["-device", "virtserialport,chardev=port"]
        for tag, path in shares.items():
            words += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap"]
            words += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        with (self._folder / "qemu").open("wb") as said:
            return subprocess.Popen(
                [str(word) for word in words],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def _connected(self) -> socket.socket:
        port = socket.socket(socket.AF_UNIX)
        here = os.open(self._folder, os.O_RDONLY)  # the name of a socket has 107 bytes at most
        end = time.monotonic() + BOOT_TIMEOUT_S
        while True:
            try:
                port.connect(f"/proc/self/fd/{here}/port")
            except OSError:
                self._must_live(time.monotonic() < end)
                time.sleep(0.05)
            else:
                os.close(here)
                return port

    def _must_live(self, is_in_time: bool) -> None:
        if is_in_time and self._qemu.poll() is None:
            return
        log = "\n".join(_text(self._folder / "console").splitlines()[-LOG_LINES:])
        raise GuestError(f"the machine does not answer: {_text(self._folder / 'qemu')}\n{log}")

    def _answer(self, name: str, end: float) -> int:
        """What the line says that begins with the name."""
        while True:
            self._port.settimeout(max(end - time.monotonic(), 1))
            try:
                said = self._answers.readline().split()
            except OSError:
                said = []
            self._must_live(bool(said))
            if said[0] == name:
                return int(said[1])

    def run(
        self,
        cmd: Sequence[str | Path],
        env: Mapping[str, str],
        timeout: float,
        stdin: str | None = None,
        cwd: Path | None = None,
    ) -> Ended:
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        (folder / "argv").write_text("".join(f"{word}\0" for word in cmd))
        (folder / "env").write_text("".join(f"{name}={value}\0" for name, value in env.items()))
        (folder / "cwd").write_text(str(cwd or Path.cwd()))
        if stdin is not None:
            (folder / "stdin").write_text(stdin)
        self._port.settimeout(ANSWER_TIMEOUT_S)
        self._port.sendall(f"{folder} {int(timeout)}\n".encode())
        status = self._answer(str(folder), time.monotonic() + timeout + ANSWER_TIMEOUT_S)
        ended = Ended(_returncode(status), _text(folder / "stdout"), _text(folder / "stderr"))
        shutil.rmtree(folder)
        return ended

    def end(self) -> None:
        self._qemu.kill()
        self._qemu.wait()
        self._port.close()
        shutil.rmtree(self._folder, ignore_errors=True)
