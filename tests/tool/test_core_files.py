"""Cores of programs whose files have been replaced: names are right, or it is said that they are missing."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from results import Compile
from tool.conftest import Tool
from tool.dumps import dumped, needs_gcore
from tool.processes import PROGRAMS, running

# gdb dumps all of a deleted file, so that classes have names there; symbols have none.
DEVICE = ("structure", "with &disk_operations")
pytestmark = needs_gcore


@dataclass
class Dump:
    """A core, what the program was, and where it was."""

    core: Path
    copy: Path
    place: Path


@pytest.fixture(scope="module", params=["there", "deleted"])
def dump(
    request: pytest.FixtureRequest, lib: Path, compile_c: Compile, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Dump]:
    """The program's file is still there, or was deleted, when it was dumped."""
    folder = tmp_path_factory.mktemp("replaced")
    program = compile_c(PROGRAMS / "contents.cc", "-rdynamic", "-Wl,--build-id")
    place = folder / "shop"
    shutil.copy(program, place)
    with running([place], lib) as process:
        if request.param == "deleted":
            place.unlink()
        yield Dump(dumped(process.pid, folder), program, place)


def contents_of(tool: Tool, dump: Dump, *words: str | Path) -> tuple[set[tuple[str, str]], str]:
    """Kinds and names, and the notes."""
    ended = tool("what", dump.core, *words, "--json")
    assert ended.status == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return {(row["kind"], row["name"]) for row in answer["contents"]}, " ".join(answer["notes"])


@pytest.mark.long("a second of processor time each", keep=1)
def test_the_same_build_has_the_names(tool: Tool, dump: Dump) -> None:
    """Installed again, or compiled again: another file, the same program."""
    dump.place.unlink(missing_ok=True)
    shutil.copy(dump.copy, dump.place)
    rows, notes = contents_of(tool, dump)
    assert DEVICE in rows
    assert "no names" not in notes


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("now", ["another build", "nothing"])
def test_what_is_missing_is_told(
    tool: Tool, dump: Dump, compile_c: Compile, tmp_path: Path, now: str
) -> None:
    """Names of another build would be wrong ones."""
    dump.place.unlink(missing_ok=True)
    if now != "nothing":
        shutil.copy(compile_c(PROGRAMS / "contents.cc", "-rdynamic", "-Wl,--build-id", "-O1"), dump.place)
    rows, notes = contents_of(tool, dump)
    assert DEVICE not in rows
    assert "no names of shop" in notes
    assert "--files" in notes
    shutil.copy(dump.copy, tmp_path / dump.place.name)
    rows, notes = contents_of(tool, dump, "--files", tmp_path)
    assert DEVICE in rows
    assert "no names" not in notes
