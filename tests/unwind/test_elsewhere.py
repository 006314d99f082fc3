"""The unwinder on another processor (emulated) and with another C library.

Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user-static and musl-tools; skipped without them."""

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from musl.test_musl import kernel_headers
from results import Result, captured
from unwind.conftest import FLAGS, build_unwinder

__all__ = ["kernel_headers"]

HERE = Path(__file__).resolve().parent
EMULATOR = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
Archives = Callable[..., Path]


@pytest.fixture(scope="module")
def unwinder_of(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """unwinder_of(compiler, *flags): compiled once, whatever the program is linked with."""
    return cache(lambda *words: build_unwinder(tmp_path_factory.mktemp("unwinder"), *words))


def compile_with(unwinder: Path, compiler: str, program: str, output: Path, *flags: str | Path) -> Path:
    words = [compiler, "-std=gnu17", *FLAGS, *flags, HERE / program, unwinder, "-o", output]
    step = captured(words, timeout=300)
    assert step.returncode == 0, step.stderr
    return output


def run(*command: str | Path) -> Result:
    step = captured(command, timeout=300)
    return Result(step.returncode, step.stdout, step.stderr)


@pytest.mark.long("2 seconds under emulation each")
@pytest.mark.parametrize(
    "flags", ["-O0", "-O2", "-O2 -mbranch-protection=standard", "-O2 -static -Wl,--eh-frame-hdr"]
)
def test_aarch64(flags: str, unwinder_of: Archives, tmp_path: Path) -> None:
    """Signed return addresses, signal frames without a table, leaf functions."""
    compiler, words = "aarch64-linux-gnu-gcc", flags.split()
    for tool in (EMULATOR[0], compiler):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    unwinder = unwinder_of(compiler, *(word for word in words if word.startswith(("-O", "-m"))))
    program = compile_with(unwinder, compiler, "stacks.c", tmp_path / "stacks", *words)
    result = run(*EMULATOR, program)
    assert (result.returncode, result.stderr) == (0, "")
    assert "402 stacks are equal" in result.stdout


LINKS = ["", "-Wl,--eh-frame-hdr", "-static", "-static -Wl,--eh-frame-hdr"]


@pytest.mark.long("a second each; each way to link", keep=1)
@pytest.mark.parametrize("link", [*LINKS, "-DTHROUGH"])
@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is not installed")
def test_musl(link: str, kernel_headers: Path, unwinder_of: Archives, tmp_path: Path) -> None:
    """Without a loader that tells of modules at any time, with tables and without an index of them.

    The C library has none: a stack that reaches its start is complete, one that ends inside is not."""
    unwinder = unwinder_of("musl-gcc", "-idirafter", kernel_headers)
    flags: list[str | Path] = ["-O2", "-g", "-idirafter", kernel_headers, *link.split()]
    if "THROUGH" in link:
        library = tmp_path / "libthrough.so"
        words = ["gcc", "-O2", "-shared", "-fPIC", "-nostdlib", HERE / "through.c", "-o", library]
        subprocess.run([str(word) for word in words], check=True, timeout=60)
        flags += [library, f"-Wl,-rpath,{tmp_path}"]
    result = run(compile_with(unwinder, "musl-gcc", "elsewhere.c", tmp_path / "elsewhere", *flags))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "6 3\n", "frames of the program that were found, complete stacks"
