"""What `pip install hakmem` gives: library and tool in one wheel, for every glibc that its name promises.

The other platforms' wheels: test_all_wheels.py.  Other versions of glibc: test_other_glibc.py."""

import hashlib
import json
import os
import platform
import re
import stat
import sys
import zipfile
from pathlib import Path

import pytest
from hakmem import __version__
from preload import preload_environment, served
from results import captured
from tool.processes import running
from wheels.conftest import Environment, built, make_environment

GLIBC_MAX = (2, 28)
LIBRARIES = {
    f"hakmem/lib/{name}"
    for name in ("libhakmem.so", "libhakmem-fortify.so", "libjemalloc.so.2", "hakmem-replay", "hakmem-walk")
}
# The program says where its malloc comes from.
PROGRAM = """
import os
objects = [bytes(1000) for _ in range(1000)]
maps = open("/proc/self/maps").read().splitlines()
print({line.split()[-1] for line in maps if "libhakmem" in line}, os.environ.get("PYTHONMALLOC"))
"""


def tool_files(root: Path) -> set[str]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "python/hakmem"]
    found = captured(words, cwd=root, check=True)
    return {name.removeprefix("python/") for name in found.stdout.splitlines()}


# ---- the file ----------------------------------------------------------------------------------------------


@pytest.mark.long("4 seconds; builds the wheel")
def test_its_name(wheel: Path) -> None:
    assert wheel.name == f"hakmem-{__version__}-py3-none-manylinux_2_28_{platform.machine()}.whl"


def test_it_has_library_and_tool(wheel: Path, root: Path) -> None:
    about = f"hakmem-{__version__}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith(about)}
        metadata = archive.read(f"{about}METADATA").decode()
        modes = {stat.S_IMODE(one.external_attr >> 16) for one in archive.infolist()}
    assert names == tool_files(root) | LIBRARIES
    assert f"\nVersion: {__version__}\n" in metadata
    assert modes <= {0o644, 0o755, 0o664}  # the last is RECORD's


@pytest.mark.long("3 seconds of packing twice")
def test_same_bytes_twice(wheel: Path, tmp_path: Path) -> None:
    again = built(tmp_path, umask=0o077)  # of another user
    assert again.name == wheel.name
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, again)]
    assert digests[0] == digests[1]


@pytest.mark.long("4 seconds; configures a tree of its own")
def test_a_compiler_may_guard_stacks_by_itself(root: Path, tmp_path: Path) -> None:
    """As Ubuntu's, which also call checked functions: the oldest glibc's table has neither."""
    tree = ["cmake", "-S", root, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    flags = os.environ | {"CFLAGS": "-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2"}
    captured(tree, env=flags, check=True)
    programs = ["hakmem_wheel_replay", "hakmem_wheel_walk"]
    step = captured(["cmake", "--build", tmp_path, "--target", *programs], env=flags)
    assert step.returncode == 0, step.stdout + step.stderr


def test_no_symbol_of_a_newer_glibc(wheel: Path, tmp_path: Path) -> None:
    """And every reference that is not weak has a version: one without would be found by luck."""
    with zipfile.ZipFile(wheel) as archive:
        libraries = [Path(archive.extract(name, tmp_path)) for name in sorted(LIBRARIES)]
    for library in libraries:
        words = ["readelf", "--dyn-syms", "--wide", str(library)]
        lines = captured(words, check=True).stdout.splitlines()
        wanted = [line.split() for line in lines if " UND " in line and not line.rstrip().endswith(" UND")]
        versions = [re.search(r"@GLIBC_([\d.]+)", words[7]) for words in wanted]
        numbers = [tuple(map(int, found[1].split("."))) for found in versions if found]
        assert numbers, "nothing was read"
        assert max(numbers) <= GLIBC_MAX
        plain = {words[7] for words, found in zip(wanted, versions, strict=True) if not found}
        assert all(words[4] == "WEAK" for words in wanted if words[7] in plain)


def test_other_machines_refuse_it(wheel: Path, tmp_path: Path) -> None:
    """pip compares the wheel's tag with the machine: here with one of an older glibc."""
    words = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--only-binary=:all:"]
    words += ["--platform", "manylinux_2_27_x86_64", "--target", str(tmp_path), str(wheel)]
    step = captured(words)
    assert step.returncode != 0
    assert "not a supported wheel on this platform" in step.stderr


# ---- installed ---------------------------------------------------------------------------------------------


@pytest.mark.long("4 seconds; makes an environment")
def test_run_serves_with_no_option(installed: Environment, tmp_path: Path) -> None:
    """By the wheel's own library, though this machine has others."""
    report = tmp_path / "report.json"
    said = installed(
        "hakmem", "run", "--env", f"HAKMEM_STATS=json:{report}", "--", "python", "-c", PROGRAM
    ).stdout
    assert said == f"{{'{installed.packages / 'hakmem' / 'lib' / 'libhakmem.so'}'}} None\n"
    told = json.loads(report.read_text())
    assert told["hakmem"] == __version__
    assert served(told) > 0


def test_hardened_has_both_libraries(installed: Environment) -> None:
    said = installed("hakmem", "run", "--harden", "--", "python", "-c", PROGRAM).stdout
    assert "lib/libhakmem.so" in said
    assert "lib/libhakmem-fortify.so" in said


@pytest.mark.parametrize(("program", "word"), [("hakmem-replay", "PLAN"), ("hakmem-walk", "PID")])
def test_its_programs_run(installed: Environment, program: str, word: str) -> None:
    step = captured([installed.packages / "hakmem" / "lib" / program])
    assert (step.returncode, word in step.stderr) == (2, True)


def test_python_objects(installed: Environment) -> None:
    assert installed("hakmem", "run", "--python", "--", "python", "-c", PROGRAM).stdout.endswith("} malloc\n")


def test_module_and_script(installed: Environment) -> None:
    for words in (["hakmem"], ["python", "-m", "hakmem"]):
        assert installed(*words, "--version").stdout.split()[-1] == __version__


def test_where_the_library_is(installed: Environment) -> None:
    """For LD_PRELOAD in a Dockerfile."""
    assert installed("hakmem", "run", "--library").stdout == f"{installed.packages}/hakmem/lib/libhakmem.so\n"


def test_looks_into_a_process(installed: Environment) -> None:
    """ps and why, of a program on the wheel's library."""
    library = Path(installed("hakmem", "run", "--library").stdout.strip())
    code = "x = [bytes(3000) for _ in range(5000)]; print('ready', flush=True); import time; time.sleep(300)"
    with running(["python3", "-c", code], library) as process:
        assert preload_environment(library)["LD_PRELOAD"] in Path(f"/proc/{process.pid}/maps").read_text()
        (line,) = (one for one in installed.json("ps")["processes"] if one["pid"] == process.pid)
        assert (line["allocator"], line["version"]) == ("hakmem", __version__)
        told = installed.json("why", process.pid)
    assert sum(one["bytes"] for one in told["lines"]) == pytest.approx(told["rss_bytes"], rel=0.01)
    assert any("512 bytes" in note and "--python" in note for note in told["notes"])


@pytest.mark.long("4 seconds of pip")
def test_uninstalled_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    made = make_environment(tmp_path / "venv")
    before = made.files()
    made.pip("install", "-q", "--no-index", "--no-deps", wheel)
    made("hakmem", "run", "--", "true")
    made.pip("uninstall", "-q", "--yes", "hakmem")
    assert {
        path for path in made.files() - before if "__pycache__" not in path.parts or "hakmem" in path.parts
    } == set()
