"""`hakmem profile` of CPython: the program's lines, with threads, generators and callbacks from C; a storm of
imports, exceptions and compiled code that is freed."""

import time
from pathlib import Path

import pytest
from hakmem.profile.live import read_profile
from hakmem.target.python_frames import FREED, place_of
from hakmem.target.switch import Settings, Switch
from hakmem.target.target import open_process
from results import Tally
from tool.processes import hakmem_json, running

PROGRAM = """\
import re, threading
kept = []
def remember(n):
    for i in range(n):
        kept.append(bytes(40_000 + i))
def handle_request():
    remember(20)
def numbers():
    for i in range(4):
        yield [None] * 6000
def by_key(number):
    kept.append("k" * 50_000)
    return -number
def in_place(found):
    kept.append(bytearray(60_000))
    return ""
def work():
    while True:
        handle_request()
        kept.append(list(numbers()))
        sorted(range(20), key=by_key)
        re.sub("a", in_place, "a" * 20)
        del kept[:-200]
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
work()
"""
STACKS = {
    "remember:5 handle_request:7 work:19",
    "numbers:10 work:20",
    "by_key:12 work:21",
    "in_place:15 work:22",
}
# Half of the code is freed at once: another one often takes its place, with its block on another line.
STORM = """\
import importlib, sys, threading
names, kept = ["csv", "json.decoder", "textwrap", "fractions"], []
def deep(n):
    return deep(n - 1) if n else [][n]
def work(number):
    while True:
        sys.modules.pop(names[number], None)
        importlib.import_module(names[number])
        try:
            deep(number * 20)
        except IndexError as error:
            error.args += (str(error),)
        for line in range(8):
            found = {}
            code = compile("\\n" * line + f"x = bytearray({2000 + 100 * line})", "<string>", "exec")
            exec(code, found)
            kept.append((found["x"], line % 2 and code))
        del kept[:-8000]
for number in range(3):
    threading.Thread(target=work, args=(number,), daemon=True).start()
print("ready", flush=True)
work(3)
"""
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    """Where pyenv or the distribution has it."""
    places = [*Path.home().glob(f".pyenv/versions/{request.param}.*/bin/python{request.param}")]
    found = [one for one in (*places, Path(f"/usr/bin/python{request.param}")) if one.exists()]
    return found[0] if found else pytest.skip(f"not installed: CPython {request.param}")


def test_sites_are_lines_of_the_program(python: Path, lib: Path, tmp_path: Path) -> None:
    program = tmp_path / "x.py"
    program.write_text(PROGRAM)
    with running([python, program], lib, {"PYTHONMALLOC": "malloc"}) as process:
        told = hakmem_json("profile", process.pid, "--for", "2s", "--period", 4096)
    found = [
        " ".join(f"{one['function']}:{one['line']}" for one in site["stack"] if one["file"].endswith("/x.py"))
        for site in told["sites"][:8]
    ]
    assert {each for each in STACKS if any(one.startswith(each) for one in found)} == STACKS, found
    functions = {one["function"] for site in told["sites"] for one in site["stack"]}
    assert not any(name.startswith(("_PyEval", "PyObject_")) for name in functions)


def test_a_storm_yields_no_wrong_line(python: Path, lib: Path, tally: Tally) -> None:
    counts = {"right": 0, "freed": 0}
    with running([python, "-c", STORM], lib, {"PYTHONMALLOC": "malloc"}) as process:
        target = open_process(process.pid)
        with Switch(target) as switch:
            switch.on(Settings(period_bytes=2048))
            for _ in range(3):
                time.sleep(0.3)
                target.python = None  # names only what is there now
                for one in read_profile(target, with_counts=False).samples:
                    line, rest = divmod(one.requested_bytes - 2001, 100)
                    places = [place for address in one.stack if (place := place_of(address))]
                    if rest or not 0 <= line < 8 or not places or places[0].file != "<string>":
                        counts["freed"] += bool(places) and places[0].function == FREED
                        continue
                    assert places[0] == ("<module>", "<string>", line + 1)
                    counts["right"] += 1
        assert process.poll() is None
    tally(counts["right"] + counts["freed"], "samples of code that is compiled and freed")
    assert any(counts.values()), counts
