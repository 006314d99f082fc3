"""CPython's own allocator hides objects from hakmem: `run --python` switches it off; `why` and `profile` say
when it is on."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from hakmem.doctor.runtimes import hidden, ignores_environment, runtime_of
from results import fetched
from tool.conftest import Tool
from tool.processes import hakmem, hakmem_json, running
from tool.pythons import python_of

CODE = "import os, sys; print(os.environ.get('PYTHONMALLOC')); sys.exit(7)"
WAITS = "x = [str(i) * 3 for i in range(20000)]; print('ready', flush=True); import time; time.sleep(300)"
PYTHON = "/usr/bin/python3"


@pytest.mark.parametrize(("options", "value"), [([], "None"), (["--python"], "malloc")])
def test_run_sets_the_variable_when_asked(tool: Tool, options: list[str], value: str) -> None:
    ended = tool("run", *options, "--", PYTHON, "-c", CODE)
    assert (ended.status, ended.stdout, ended.stderr) == (7, f"{value}\n", "")


def test_a_script_that_starts_python(tool: Tool, tmp_path: Path) -> None:
    """Children have it, too; another value of the environment does not win."""
    script = tmp_path / "start"
    script.write_text(f'#!/bin/sh\n"{PYTHON}" -c "{CODE}"\n')
    script.chmod(0o755)
    assert tool("run", "--python", "--", script, PYTHONMALLOC="pymalloc").stdout == "malloc\n"


def test_two_values_exclude_each_other(tool: Tool) -> None:
    ended = tool("run", "--python", "--env", "PYTHONMALLOC=debug", "--", PYTHON, "-c", CODE)
    assert ended.status == 2
    assert "leave out --env PYTHONMALLOC=debug" in ended.stderr
    ended = tool("run", "--python", "--env", "PYTHONMALLOC=malloc", "--", PYTHON, "-c", CODE)
    assert ended.status == 7


@pytest.mark.parametrize("name", ["python3.13t", "python3.14td", "pypy3", "pypy3.11"])
def test_pythons_without_the_switch(tool: Tool, tmp_path: Path, name: str) -> None:
    """One would not start with the variable, the other ignores it."""
    program = Path(shutil.copy("/bin/true", tmp_path / name))
    assert tool("run", "--", program).status == 0
    ended = tool("run", "--python", "--", program)
    assert ended.status == 126
    assert "--python is not for it" in ended.stderr


@pytest.mark.parametrize(
    ("option", "lines"),
    [
        ("-I", ["-I app.py", "-X dev -W ignore -sI -m app", "--version -I"]),
        ("-E", ["-uE -c 1", "-Xdev -E app.py"]),
        (None, ["app.py -I", "-c print(1) -E", "-m app -I", "-u -X importtime app.py -E", "- -E", ""]),
    ],
)
def test_options_that_ignore_the_variable(option: str | None, lines: list[str]) -> None:
    assert {ignores_environment(["python3", *line.split()]) for line in lines} == {option}


def test_run_refuses_what_would_have_no_effect(tool: Tool) -> None:
    ended = tool("run", "--python", "--", PYTHON, "-I", "-c", CODE)
    assert ended.status == 2
    assert "-I ignores PYTHONMALLOC" in ended.stderr


@pytest.mark.parametrize("kind", ["plain", "switched", "ignored"])
def test_what_is_hidden_is_said(lib: Path, kind: str) -> None:
    environment = {} if kind == "plain" else {"PYTHONMALLOC": "malloc"}
    options = ["-I"] if kind == "ignored" else []
    with running([PYTHON, *options, "-c", WAITS], lib, environment) as process:
        notes = hakmem_json("why", process.pid)["notes"]
        sampled = hakmem("profile", process.pid, "--for", "0.1s").stderr
    told = [note for note in notes if "hakmem run --python" in note]
    assert len(told) == (kind != "switched")
    assert ("hakmem run --python" in sampled) == (kind != "switched")


@pytest.mark.long("a second of processor time")
def test_a_profile_from_the_start_says_it(tool: Tool, tmp_path: Path) -> None:
    words = ["run", "-o", tmp_path / "x.json"]
    assert "hakmem run --python" in tool(*words, "--", PYTHON, "-c", CODE).stderr
    assert "hakmem run --python" not in tool(*words, "--python", "--", PYTHON, "-c", CODE).stderr
    assert "hakmem run --python" not in tool(*words, "--", "/bin/true").stderr


@pytest.mark.parametrize("variable", ["", "pymalloc", "debug"])
def test_it_is_one_sentence(variable: str) -> None:
    text = hidden(runtime_of(Path(sys.executable).resolve().name, ()), {"PYTHONMALLOC": variable})
    assert text is not None
    assert text.endswith(".")
    assert ". " not in text
    for value in ("malloc", "malloc_debug"):
        assert hidden(runtime_of("python3.12", ()), {"PYTHONMALLOC": value}) is None
    assert hidden(runtime_of("node", ()), {}) is None  # it has no switch


KEPT = """
import ctypes, sys, threading, time
from pathlib import Path
def move():
    global box
    junk = []
    while True:
        box = [[None] * n for n in range(50)] and [[box[0][0]]]
        junk.append(bytes(700))
        if len(junk) > 3000: junk.clear()
box = [[bytearray(5000)]]
def where():  # in a frame of its own: it leaves no reference on the interpreter's stack
    return hex(ctypes.addressof((ctypes.c_char * 5000).from_buffer(box[0][0])))
Path(sys.argv[1]).write_text(where())
if sys.argv[2] == "moves":
    threading.Thread(target=move, daemon=True).start()
print("ready", flush=True)
time.sleep(300)
"""


GLOBAL = """
import ctypes, sys, time
from pathlib import Path
AUDIT = []
class Record:
    def __init__(self): self.body = bytearray(5000)
for _ in range(100): AUDIT.append(Record())
def where():
    return hex(ctypes.addressof((ctypes.c_char * 5000).from_buffer(AUDIT[50].body)))
Path(sys.argv[1]).write_text(where())
print("ready", flush=True)
time.sleep(300)
"""


def one_python(version: str) -> str:
    return str(fetched(f"CPython {version}", python_of, version)) if version else PYTHON


@pytest.mark.long("a second each; other versions of Python")
@pytest.mark.parametrize("version", ["", "3.8", "3.10", "3.13"])
def test_a_path_ends_at_the_variable_that_holds_the_object(tmp_path: Path, lib: Path, version: str) -> None:
    """Not in the collector's list, which links all objects, nor in a word that a free list has left."""
    file, python = tmp_path / "address", one_python(version)
    with running([python, "-c", GLOBAL, str(file)], lib, {"PYTHONMALLOC": "malloc"}) as process:
        path = hakmem_json("what", process.pid, file.read_text(), "--path")["path"]
        text = hakmem("what", process.pid, file.read_text(), "--path").stdout
    assert path[-1]["variable"] == "__main__.AUDIT", path
    types = [one["content"]["name"] for one in path if one["content"]]
    assert types[0] == "bytearray"
    assert "list" in types
    assert re.search(r"variable __main__.AUDIT: block .*, points 16 bytes into the block", text), text


def test_what_a_path_cannot_show_is_said(tmp_path: Path, lib: Path) -> None:
    """In CPython's own arenas there is no way from object to object."""
    file = tmp_path / "address"
    with running([PYTHON, "-c", GLOBAL, str(file)], lib) as process:
        said = hakmem("what", process.pid, file.read_text(), "--path")
    assert "hakmem run --python" in said.stderr
    assert "root: anonymous mapping" in said.stdout


@pytest.mark.long("2 seconds each")
@pytest.mark.parametrize("how", ["rests", "moves"])
def test_the_path_of_an_object(tmp_path: Path, lib: Path, how: str) -> None:
    """Half of the scans of a program that moves what holds it find none: that it is lost is no answer."""
    file = tmp_path / "address"
    with running([PYTHON, "-c", KEPT, str(file), how], lib, {"PYTHONMALLOC": "malloc"}) as process:
        answers = [hakmem_json("what", process.pid, file.read_text(), "--path") for _ in range(5)]
        text = hakmem("what", process.pid, file.read_text()).stdout
    assert "Python object: bytearray" in text
    found = [one["path"] for one in answers if one["path"]]
    assert found
    assert all(path[0]["content"]["name"] == "bytearray" for path in found if path[0]["content"])
    assert all(one["path"] or "may have moved its words" in one["notes"][-1] for one in answers)
