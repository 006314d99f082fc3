"""`hakmem profile` of CPython: the program's lines, with threads, generators and callbacks from C; a storm of
imports, exceptions and compiled code that is freed."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hakmem.profile.files import load
from hakmem.profile.labels import Labels
from hakmem.profile.live import read_profile
from hakmem.profile.session import TOO_MANY, python_notes
from hakmem.target.python_frames import FREED, Place, PythonFrames, place_of
from hakmem.target.switch import Settings, Switch, read_state
from hakmem.target.target import open_process
from results import Compile, Tally, fetched
from tool.dumps import dumped, needs_gcore
from tool.processes import PROGRAMS, hakmem, hakmem_json, running, wait_until
from tool.pythons import python_of

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
        for line in range(40 if len(kept) < 2000 else 0):
            found = {}
            code = compile("\\n" * line + f"x = bytearray({20000 + 100 * line})", "<string>", "exec")
            exec(code, found)
            kept.append((found["x"], line % 2 and code))
for number in range(3):
    threading.Thread(target=work, args=(number,), daemon=True).start()
print("ready", flush=True)
work(3)
"""
# Until 3.10 nothing shows that a thread runs what another has made.
INTERPRETERS = """\
import itertools, sys, threading
some = __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
def made(number):
    one, block = some.create(), f"bytearray({20000 + 100 * number})"
    some.run_string(one, "\\n" * number + f"def work(kept=[]): del kept[20:]; kept.insert(0, {block})")
    return one
def run(*ones):
    for one in itertools.cycle(ones):
        some.run_string(one, "for _ in range(20): work()")
ones = list(map(made, range(6)))
while sys.version_info >= (3, 11) and len(ones) > 3:
    threading.Thread(target=run, args=(ones.pop(),), daemon=True).start()
print("ready", flush=True)
run(*ones)
"""
SAMPLES = int(os.environ.get("PROFILE_SAMPLES", 20_000))
EMBEDDED = "kept = []\ndef remember():\n    kept.extend(bytearray(40000) for _ in range(20))\nremember()"
OF_THE_REST = 30_000  # bytes of embeds.c's blocks while there is no interpreter
OLD = "3.9 to 3.14 with the global lock, and the process runs an older one"
FROM_THE_START = {"PYTHONMALLOC": "malloc", "HAKMEM_PROFILE": "4096"}
BEGUN_BEFORE = "samples so far have no lines of Python"
HIDDEN = "hakmem run --python, or PYTHONMALLOC=malloc, makes all of them use malloc"
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    return fetched(f"CPython {request.param}", python_of, request.param)


@pytest.mark.long("5 seconds for each version of Python")
def test_sites_are_lines_of_the_program(python: Path, lib: Path, tmp_path: Path) -> None:
    program, file = tmp_path / "x.py", tmp_path / "x.pb.gz"
    program.write_text(PROGRAM)
    with running([python, program], lib, {"PYTHONMALLOC": "malloc"}) as process:
        told = hakmem_json("profile", process.pid, "--for", "2s", "--period", 4096, "-o", file)
    found = [
        " ".join(f"{one['function']}:{one['line']}" for one in site["stack"] if one["file"].endswith("/x.py"))
        for site in told["sites"][:8]
    ]
    assert {each for each in STACKS if any(one.startswith(each) for one in found)} == STACKS, found
    stacks = {tuple((one["function"], one["line"]) for one in site["stack"]) for site in told["sites"]}
    assert not any(name.startswith(("_PyEval", "PyObject_")) for stack in stacks for name, _ in stack)
    of_file = load(file)
    frames = map(Labels(of_file, with_internals=True).frames, (one.stack for one in of_file.samples))
    assert {tuple((frame.function, frame.line) for frame in stack) for stack in frames} == stacks


def samples_of(process: subprocess.Popen[str], count: int) -> Iterator[tuple[int, list[Place]]]:
    """The size and the places of live samples, again and again."""
    target = open_process(process.pid)
    with Switch(target) as switch:
        switch.on(Settings(period_bytes=16384))
        while int(read_state(target)["samples"]) < count:
            time.sleep(0.3)
            target.python = None  # names only what is there now
            for one in read_profile(target, with_counts=False).samples:
                yield one.requested_bytes, [place for address in one.stack if (place := place_of(address))]
    assert process.poll() is None


@pytest.mark.long("15 seconds for each version of Python; the others read its lines at rest")
def test_a_storm_yields_no_wrong_line(python: Path, lib: Path, tally: Tally) -> None:
    """All of the code that is still there has its line."""
    right = 0
    with running([python, "-c", STORM], lib, {"PYTHONMALLOC": "malloc"}) as process:
        for size, places in samples_of(process, SAMPLES):
            line, rest = divmod(size - 20_001, 100)
            if rest or not 0 <= line < 40 or not places or places[0].file not in ("<string>", ""):
                continue
            assert places[0] == ("<module>", "<string>", line + 1) or (
                places[0].function == FREED and line % 2 == 0
            )
            right += line % 2
        wait_until(lambda: TOO_MANY in "".join(python_notes(open_process(process.pid))), "no stack is cut")
    tally(right, "samples of code that is compiled in a storm")
    assert right > 100


@pytest.mark.long("6 seconds; the lines of one interpreter are those of the others")
def test_each_interpreter_has_its_own_lines(python: Path, lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = set()
    with running([python, "-c", INTERPRETERS], lib, {"PYTHONMALLOC": "malloc"}) as process:
        for size, places in samples_of(process, SAMPLES // 2):
            line, rest = divmod(size - 20_001, 100)
            if not rest and 0 <= line < 6:
                assert (places[0].function, places[0].line) == ("work", line + 1)
                assert [one.function for one in places[1:]] in (["<module>"], [FREED])
                right.add(line)
        target = open_process(process.pid)
        read_profile(target)
        frames = PythonFrames.of(target)
        assert frames is not None
        address, _ = next(place for place, code in frames._codes.items() if code)
        words = frames.memory.words
        monkeypatch.setattr(frames.memory, "words", lambda at, count: [0, *words(at, count)[1:]])
        assert frames._hash(address) is None, "without references it is freed"
    assert right == set(range(6))


@pytest.mark.long("2 seconds each; other versions of Python")
@pytest.mark.parametrize("python", ["3.9", "3.11", "3.13"], indirect=True)
def test_an_interpreter_ends(python: Path, lib: Path, compile_c: Compile) -> None:
    library = python.parents[1] / "lib" / f"lib{python.name}.so.1.0"
    if not library.exists():
        pytest.skip(f"not installed: {library.name}")
    program = [compile_c(PROGRAMS / "embeds.c"), library, EMBEDDED]
    with running(program, lib, {"PYTHONMALLOC": "malloc", "PYTHONHOME": str(python.parents[1])}) as process:
        stacks = list(samples_of(process, SAMPLES // 10))
        with Switch(open_process(process.pid)) as switch:
            switch._set("python_code_type", 0)  # as if the interpreter were loaded only now
            switch.renew(0.0)
            assert switch._record()["python_code_type"]
    assert any(places for size, places in stacks if size != OF_THE_REST)
    assert not any(places for size, places in stacks if size == OF_THE_REST)


@pytest.mark.long("a second each", keep=1)
@pytest.mark.parametrize(
    ("python", "variables", "words", "note"),
    [
        ("3.8", {"PYTHONMALLOC": "malloc"}, "profile PID --for 300ms", OLD),
        ("3.11", FROM_THE_START, "profile PID", BEGUN_BEFORE),
        ("3.11", FROM_THE_START, "top PID", BEGUN_BEFORE),
        ("3.11", FROM_THE_START, "export -", BEGUN_BEFORE),
        pytest.param("3.11", FROM_THE_START, "profile CORE", BEGUN_BEFORE, marks=needs_gcore),
        ("3.11", {}, "what PID", HIDDEN),
        ("3.11", {}, "leaks PID --for 300ms", HIDDEN),
    ],
    indirect=["python"],
)
def test_missing_lines_have_a_reason(
    python: Path, variables: dict[str, str], words: str, note: str, lib: Path, tmp_path: Path
) -> None:
    program = "import time\nprint('ready', flush=True)\nwhile 1: x = [0] * 9000; time.sleep(0.001)"
    with running([python, "-c", program], lib, variables) as process:
        core = dumped(process.pid, tmp_path) if "CORE" in words else tmp_path
        ended = hakmem(*words.replace("CORE", str(core)).replace("PID", str(process.pid)).split())
    assert note in " ".join((ended.stdout + ended.stderr).split())
