"""A library in a folder whose name LD_PRELOAD cannot carry (`My Projects`): programs run on it, too."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hakmem.base.errors import HakmemError
from hakmem.launch import preloadable
from hakmem.launch.preload import FORTIFY, examine
from preload import json_stats_option, preload_environment, read_reports, served
from results import captured
from tool.conftest import Tool

FOLDERS = ("My Projects", "a:b", "$LIB", "tab\there")


@pytest.fixture(params=FOLDERS)
def library(request: pytest.FixtureRequest, tmp_path: Path, lib: Path) -> Path:
    folder = tmp_path / request.param
    folder.mkdir()
    return Path(shutil.copy(lib, folder / lib.name))


def test_a_command_runs_on_it(library: Path, tool: Tool, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ended = tool(
        "run",
        "--env",
        f"HAKMEM_STATS=json:{report}",
        "--",
        "sh",
        "-c",
        "env true; cat /proc/$$/maps",
        HAKMEM_LIBRARY=str(library),
    )
    assert (ended.status, ended.stderr) == (0, "")
    assert str(library) in ended.stdout, "the file itself is mapped"
    assert served(json.loads(report.read_text()))


def test_so_do_the_scripts_commands(library: Path, tmp_path: Path) -> None:
    environment = preload_environment(library, json_stats_option(tmp_path))
    ended = captured(["ls", "/"], env=environment, check=True)
    assert ended.stderr == ""
    assert served(read_reports(tmp_path)[0])


def test_bounds_are_checked_from_there(library: Path, tool: Tool) -> None:
    shutil.copy(tool.library.with_name(FORTIFY), library.parent)
    ended = tool("run", "--harden", "--", "cat", "/proc/self/maps", HAKMEM_LIBRARY=str(library))
    assert (ended.status, ended.stderr) == (0, "")
    assert FORTIFY in ended.stdout


def test_doctor_finds_nothing_wrong(library: Path, tool: Tool) -> None:
    ended = tool("doctor", "--json", HAKMEM_LIBRARY=str(library), HAKMEM_DECAY_MS="1000")
    found = {item["name"]: item for item in json.loads(ended.stdout)["findings"]}
    assert found["library"]["verdict"] == found["options"]["verdict"] == "ok"


def test_whose_path_is_to_be_written_down_is_warned(library: Path, tool: Tool) -> None:
    ended = tool("run", "--library", HAKMEM_LIBRARY=str(library))
    assert ended.stdout == f"{library}\n"
    assert "warning: LD_PRELOAD has no way to write" in ended.stderr
    assert tool("run", "--library").stderr == ""


def test_the_link_is_this_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its name that another made is not used; a link that leads elsewhere is made anew."""
    library = tmp_path / "a b" / "libhakmem.so"
    library.parent.mkdir()
    others, ours = tmp_path / "others", tmp_path / "ours"
    for place in (others, ours):
        place.mkdir()
    (others / f"hakmem-{os.geteuid()}").symlink_to(tmp_path)
    monkeypatch.setattr(preloadable, "_places", lambda: iter([others, ours]))
    path = preloadable.preloadable(library)
    assert path.is_relative_to(ours)
    assert path.parent.readlink() == library.parent
    path.parent.unlink()
    path.parent.symlink_to("/nowhere")
    assert preloadable.preloadable(library) == path
    assert path.parent.readlink() == library.parent
    assert path.parent.parent.stat().st_mode & 0o777 == 0o755
    assert preloadable.preloadable(Path("/usr/lib/libhakmem.so.0")) == Path("/usr/lib/libhakmem.so.0")


def test_without_a_place_for_the_link_it_is_said_what_to_do(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preloadable, "_places", lambda: iter([Path("/proc")]))
    with pytest.raises(HakmemError, match="install hakmem into another folder"):
        preloadable.preloadable(library)


def test_libraries_of_a_program_are_found_there(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    library, program = folder / "libone.so", tmp_path / "program"
    (tmp_path / "one.c").write_text("int one(void) { return 1; }\n")
    (tmp_path / "main.c").write_text("int one(void);\nint main(void) { return one() - 1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "one.c", "-o", library], check=True)
    words = ["cc", tmp_path / "main.c", library, f"-Wl,-rpath,{folder}", "-o", program]
    subprocess.run(words, check=True)
    assert library in examine([str(program)], None).libraries


@pytest.mark.parametrize("name", ["test", "bench", "lab", "wheel", "dist"])
def test_make_says_what_needs_another_folder(name: str, root: Path, tmp_path: Path) -> None:
    """Before anything is installed."""
    folder = tmp_path / "My Projects"
    folder.mkdir()
    shutil.copy(root / "Makefile", folder)
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    step = captured(["make", name], cwd=folder, env=outer)
    assert step.returncode == 2
    assert f"{folder}: this needs a folder without space" in step.stderr
    assert step.stdout == ""
