"""The imports of a command: the tool starts quickly because most need little.  No time is measured."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hakmem.base.lazy import Lazy
from hakmem.target.elf import open_elf
from hakmem.target.process import Process
from preload import clean_environment
from results import captured
from tool.conftest import StartOnHakmem

HEAVY = {"numpy", "rich", "textual", "jinja2", "prometheus_client", "http", "ssl", "asyncio"}
# The tool, with the processes of the machine replaced by these; then what it imported.
SCRIPT = """
import json, sys
import hakmem.target.process as processes
pids = json.loads(sys.argv.pop(1))
processes.all_processes = lambda: map(processes.Process, pids)
from hakmem.cli import main
try:
    main(args=sys.argv[1:], prog_name="hakmem")
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""
FIX = "pip install 'hakmem[numpy]'"
WITHOUT_NUMPY = (
    "import sys; sys.modules['numpy'] = None; from hakmem.entry import main; sys.exit(main(sys.argv[1:]))"
)


def imported(*arguments: str | Path, pids: tuple[int, ...] = ()) -> set[str]:
    words = [sys.executable, "-c", SCRIPT, json.dumps(pids), *map(str, arguments)]
    step = captured(words, env=clean_environment())
    assert step.returncode == 0, step.stderr
    return HEAVY & set(json.loads(step.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("run", "--library"), ("--completion", "bash")]
)
def test_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert imported(*arguments) == set()


def test_ps_without_hakmem(on_hakmem: StartOnHakmem) -> None:
    """Files are read, and a table is printed."""
    other = on_hakmem(["sleep", "300"], library=None)
    assert imported("ps", pids=(other.pid,)) <= {"rich"}


def test_run(lib: Path) -> None:
    """Modules that must not be imported before the program is started."""
    script = SCRIPT.replace(
        "from hakmem.cli",
        "import hakmem.commands.run as run\nrun.launch = lambda *_: sys.exit()\nfrom hakmem.cli",
    )
    words = [sys.executable, "-c", script, "[]", "run", "--env", "A=1", "--", sys.executable]
    environment = clean_environment() | {"HAKMEM_LIBRARY": str(lib)}
    step = captured(words, env=environment, check=True)
    assert HEAVY & set(json.loads(step.stderr.splitlines()[-1])) == set()


def without_numpy(*arguments: str | int, script: str = WITHOUT_NUMPY) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return captured(words, env=clean_environment())


def test_numpy_is_optional(root: Path) -> None:
    project = tomllib.loads((root / "python/pyproject.toml").read_text())["project"]
    assert "numpy" not in " ".join(project["dependencies"])
    assert len(project["optional-dependencies"]["numpy"]) == 1


@pytest.mark.long("a second of processor time")
def test_commands_that_do_not_need_numpy(on_hakmem: StartOnHakmem) -> None:
    pid, other = on_hakmem(["sleep", "300"]).pid, on_hakmem(["sleep", "300"], library=None)
    listed = without_numpy("ps")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert re.search(rf"^ *{pid} +hakmem", listed.stdout, re.MULTILINE)
    assert f"limits need numpy: {FIX}" in listed.stdout
    assert "mappings" in without_numpy("doctor", other.pid).stdout


@pytest.mark.long("a second each; each command that reads memory", keep=1)
@pytest.mark.parametrize("command", ["stat", "top", "why", "profile", "purge", "what", "leaks", "doctor"])
def test_commands_that_need_numpy(command: str, on_hakmem: StartOnHakmem) -> None:
    step = without_numpy(command, on_hakmem(["sleep", "300"]).pid)
    assert step.returncode == 1
    assert step.stderr == f"hakmem: numpy is not installed, which this command needs: {FIX}\n"


def test_a_program_is_not_started_for_a_profile_that_needs_numpy(lib: Path) -> None:
    script = f"import os; os.environ['HAKMEM_LIBRARY'] = {str(lib)!r}; {WITHOUT_NUMPY}"
    step = without_numpy("run", "-o", "x.pb.gz", "--", "echo", "started", script=script)
    assert (step.returncode, step.stdout) == (1, "")
    assert FIX in step.stderr


def test_memory_that_is_not_mapped_is_reported_without_numpy() -> None:
    script = (
        "import os, sys; sys.modules['numpy'] = None; from hakmem.target.live_memory import ProcessMemory; "
        "from hakmem.target.process import Process; ProcessMemory(Process(os.getpid())).read(8, 1)"
    )
    assert "UnreadableError: cannot read" in without_numpy(script=script).stderr


def test_a_file_is_read_once_for_all_processes(tmp_path: Path) -> None:
    """Each has paths of its own to what it maps: each C library was read once for each process."""
    other = tmp_path / "other"
    other.hardlink_to(Path(shutil.copy("/bin/true", tmp_path / "one")))
    assert open_elf(tmp_path / "one") is open_elf(other) is not None
    assert open_elf(Path(shutil.copy("/bin/true", tmp_path / "copy"))) is not open_elf(other)


def test_a_large_file_does_not_stay_in_memory(tmp_path: Path) -> None:
    """Programs of 100 MB are searched for hakmem's block."""
    size = 64 << 20
    program = Path(shutil.copy("/bin/true", tmp_path / "large"))
    with program.open("ab") as file:
        file.write(b"x" * (size - 16) + b"y" * 16)
    found = open_elf(program)
    assert found is not None
    assert found.symbol("nothing") is None
    assert found.contains(b"y" * 16)  # across the border of two pieces, or at the end
    assert not found.contains(b"z" * 16)
    (mapping,) = (one for one in Process(os.getpid()).smaps() if one.mapping.path == str(program))
    assert mapping.rss_bytes < size / 2


def test_a_lazy_module_is_the_module() -> None:
    import colorsys

    stands_for = Lazy("colorsys")
    assert stands_for.rgb_to_hsv is colorsys.rgb_to_hsv
    with pytest.raises(AttributeError):
        stands_for.nothing  # noqa: B018
    with pytest.raises(ImportError):
        Lazy("no_such_module").anything  # noqa: B018
