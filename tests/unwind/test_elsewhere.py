"""The unwinder on another processor (emulated) and with another C library.

Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user-static and musl-tools; skipped without them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from results import Result, captured

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
EMULATOR = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
PARTS = ("stack/unwind*.c", "os/*.c", "base/*.c")
SOURCES = sorted(path for part in PARTS for path in (ROOT / "src").glob(part))
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-DHAK_DEBUG=0", "-g", f"-I{ROOT / 'src'}", "-pthread"]


def compile_with(compiler: str, program: str, output: Path, *flags: str | Path) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    words = [compiler, *FLAGS, *flags, HERE / program, *SOURCES, "-o", output]
    step = captured(words, timeout=300)
    assert step.returncode == 0, step.stderr
    return output


def run(*command: str | Path) -> Result:
    step = captured(command, timeout=300)
    return Result(step.returncode, step.stdout, step.stderr)


@pytest.mark.parametrize(
    "flags",
    ["-O0", "-O2", "-O2 -mbranch-protection=standard", "-O2 -static -Wl,--eh-frame-hdr"],
)
def test_aarch64(flags: str, tmp_path: Path) -> None:
    """Signed return addresses, signal frames without a table, leaf functions."""
    if shutil.which(EMULATOR[0]) is None:
        pytest.skip(f"{EMULATOR[0]} is not installed")
    program = compile_with("aarch64-linux-gnu-gcc", "stacks.c", tmp_path / "stacks", *flags.split())
    result = run(*EMULATOR, program)
    assert (result.returncode, result.stderr) == (0, "")
    assert "402 stacks are equal" in result.stdout


LINKS = ["", "-Wl,--eh-frame-hdr", "-static", "-static -Wl,--eh-frame-hdr"]


@pytest.mark.parametrize("link", [*LINKS, "-DTHROUGH"])
def test_musl(link: str, tmp_path: Path) -> None:
    """Without a loader that tells of modules at any time, with tables and without an index of them.

    The C library has none: a stack that reaches its start is complete, one that ends inside is not."""
    headers = tmp_path / "kernel"
    headers.mkdir()
    triplet = captured(["gcc", "-print-multiarch"], check=True).stdout
    for name, where in {
        "linux": "linux",
        "asm-generic": "asm-generic",
        "asm": f"{triplet.strip()}/asm",
    }.items():
        (headers / name).symlink_to(Path("/usr/include") / where)
    flags: list[str | Path] = ["-O2", "-idirafter", headers, *link.split()]
    if "THROUGH" in link:
        library = tmp_path / "libthrough.so"
        words = ["gcc", "-O2", "-shared", "-fPIC", "-nostdlib", HERE / "through.c", "-o", library]
        subprocess.run([str(word) for word in words], check=True, timeout=60)
        flags += [library, f"-Wl,-rpath,{tmp_path}"]
    result = run(compile_with("musl-gcc", "elsewhere.c", tmp_path / "elsewhere", *flags))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "6 3\n", "frames of the program that were found, complete stacks"
