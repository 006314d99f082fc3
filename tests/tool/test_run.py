"""hakmem run: the program is the program, on hakmem; or it is said why not."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from results import Compile, captured
from tool.conftest import PROGRAMS, Tool
from tool.processes import begun

MALLOCS = r"lib[a-z]*(?:hakmem|malloc)\S*"
PRINT_MAPS = f"import re; print(sorted(set(re.findall({MALLOCS!r}, open('/proc/self/maps').read()))))"
E_MACHINE_AT, AARCH64 = 18, b"\xb7\x00"


def test_it_runs_on_hakmem_with_its_arguments(tool: Tool) -> None:
    ended = tool(
        "run", "--", "/usr/bin/python3", "-c", "import sys; print(sys.argv[1:]);" + PRINT_MAPS, "-x", "--json"
    )
    assert ended.stdout == f"['-x', '--json']\n['{tool.library.resolve().name}']\n", ended


def test_it_runs_on_hakmem_under_jemallocs_name(tool: Tool) -> None:
    ended = tool("run", "--as", "jemalloc", "--", "/usr/bin/python3", "-c", PRINT_MAPS)
    assert ended.stdout == "['libjemalloc.so.2']\n", ended


def test_a_library_without_it_is_refused(tool: Tool, tmp_path: Path) -> None:
    alone = shutil.copy(tool.library, tmp_path / "libhakmem.so")
    ended = tool("run", "--as", "jemalloc", "true", HAKMEM_LIBRARY=str(alone))
    assert ended.status == 1
    assert "libjemalloc.so.2 is not beside" in ended.stderr


@pytest.mark.parametrize("status", [0, 3, 255])
def test_exit_status_is_its_own(tool: Tool, status: int) -> None:
    assert tool("run", "sh", "-c", f"exit {status}").status == status


def test_signals_reach_it(tool: Tool) -> None:
    """It has the tool's own PID: nothing stands in between."""
    script = "import os, signal, sys; print(os.getpid(), flush=True); signal.pause()"
    words = ("run", "--", "/usr/bin/python3", "-c", script)
    with begun(*words, HAKMEM_LIBRARY=str(tool.library)) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM


def test_no_signal_is_left_ignored(tool: Tool) -> None:
    """Python ignores SIGPIPE; `yes | head` would never end.  What the tests inherited is another thing."""
    question = ["grep", "SigIgn", "/proc/self/status"]
    without = captured(question, check=True)
    assert tool("run", *question).stdout == without.stdout


def test_what_was_preloaded_before_stays(tool: Tool, compiled: Compile) -> None:
    other = compiled("other_format", "-DFORMAT=1", "-shared", "-fPIC")
    for before in (str(other), f"{tool.library}:{other}", f"/nowhere/libhakmem.so.0 {other}"):
        ended = tool("run", "--", "/usr/bin/env", LD_PRELOAD=before)
        assert f"\nLD_PRELOAD={tool.library}:{other}\n" in f"\n{ended.stdout}"


def test_env(tool: Tool) -> None:
    ended = tool("run", "--env", "HAKMEM_DECAY_MS=7", "--env", "A=b=c", "env")
    assert {"HAKMEM_DECAY_MS=7", "A=b=c"} <= set(ended.stdout.splitlines())
    assert "HAKMEM_LIBRARY" not in ended.stdout, "the tool's own variable"
    assert "fetched past the magazines" in tool("run", "--env", "HAKMEM_STATS=1", "ls").stderr


def test_a_program_that_skips_exit_handlers_ends_without_a_report(tool: Tool, tmp_path: Path) -> None:
    program = ("/usr/bin/python3", "-c", "import os; os._exit(3)")
    ended = tool("run", "--", *program, TMPDIR=str(tmp_path), HAKMEM_STATS="1")
    assert (ended.status, ended.stderr) == (3, "")
    assert not list(tmp_path.iterdir())


def test_names_that_are_no_programs(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for word, status, sentence in (
        ("nosuchprogram", 127, "nosuchprogram: not found in PATH"),
        (tmp_path / "nosuch", 127, "no such file"),
        (tmp_path / "text", 126, "not executable"),
        (tmp_path, 126, "is a directory"),
    ):
        ended = tool("run", word)
        assert (ended.status, ended.stdout) == (status, "")
        assert sentence in ended.stderr


@pytest.mark.parametrize("first_line", ["#!/bin/sh\n", "#!/usr/bin/env -S sh -e\n", ""])
def test_scripts(tool: Tool, tmp_path: Path, first_line: str) -> None:
    script = tmp_path / "script"
    script.write_text(f"{first_line}grep -c libhakmem.so /proc/self/maps\n")
    script.chmod(0o755)
    ended = tool("run", script)
    assert int(ended.stdout) > 0, ended


def setuid(folder: Path, _: Compile) -> Path:
    path = folder / "sleep"
    shutil.copy("/bin/sleep", path)
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    return path


def static(_: Path, compiled: Compile) -> Path:
    return compiled("crowd", "-static")


def static_pie(_: Path, compiled: Compile) -> Path:
    return compiled("crowd", "-static-pie")


def of_musl(_: Path, compiled: Compile) -> Path:
    return compiled("crowd", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")


def of_another_machine(folder: Path, _: Compile) -> Path:
    path = folder / "program"
    data = bytearray(Path("/bin/true").read_bytes())
    here = data[E_MACHINE_AT : E_MACHINE_AT + 2]
    data[E_MACHINE_AT : E_MACHINE_AT + 2] = AARCH64 if here != AARCH64 else b"\x3e\x00"
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def script_of_a_static_shell(folder: Path, compiled: Compile) -> Path:
    path = folder / "script"
    path.write_text(f"#!{compiled('crowd', '-static')}\n")
    path.chmod(0o755)
    return path


def with_own_malloc(_: Path, compiled: Compile) -> Path:
    return compiled("own_malloc", "-rdynamic")


def with_sanitizer(folder: Path, _: Compile) -> Path:
    """Of gcc, whose runtime is a library."""
    return sanitized(folder, "gcc", "address")


def with_sanitizer_of_threads(folder: Path, _: Compile) -> Path:
    return sanitized(folder, "gcc", "thread")


def sanitized(folder: Path, compiler: str, kind: str) -> Path:
    source, path = folder / "made.c", folder / kind
    source.write_text("#include <stdlib.h>\nint main(void) { free(malloc(1)); }\n")
    made = captured([compiler, f"-fsanitize={kind}", source, "-o", path])
    if made.returncode:
        pytest.skip(f"{compiler} has no runtime of -fsanitize={kind} here")
    return path


def that_needs_no_library(folder: Path, _: Compile) -> Path:
    """A loader is asked for, and finds nothing to load: libc.a instead of libc.so, and no symbols left."""
    source, path = folder / "alone.c", folder / "alone"
    source.write_text("void _start(void) { for (;;) { __builtin_trap(); } }\n")
    subprocess.run(["gcc", "-nostdlib", "-fPIE", "-pie", "-s", source, "-o", path], check=True)
    return path


TRAPS = {
    setuid: ("setuid", "ignores LD_PRELOAD"),
    static: ("static", "linked statically"),
    static_pie: ("static", "linked statically"),
    that_needs_no_library: ("no library", "is linked in"),
    of_musl: ("libc", "runs on musl"),
    of_another_machine: ("machine", "is built for aarch64"),
    script_of_a_static_shell: ("static", "linked statically"),
    with_own_malloc: ("own malloc", "(mimalloc)"),
    with_sanitizer: ("sanitizer", "AddressSanitizer"),
    with_sanitizer_of_threads: ("sanitizer", "ThreadSanitizer"),
}


def test_the_sanitizer_of_undefined_behaviour_has_no_malloc(tool: Tool, tmp_path: Path) -> None:
    assert tool("run", sanitized(tmp_path, "gcc", "undefined")).status == 0


def test_a_runtime_that_is_linked_in_is_found(tool: Tool, tmp_path: Path) -> None:
    """As clang does by default: its functions are the program's, and its malloc is not."""
    source, path = tmp_path / "linked.c", tmp_path / "linked"
    source.write_text("void __asan_init(void) {}\nint main(void) { return 0; }\n")
    subprocess.run(["gcc", "-rdynamic", source, "-o", path], check=True)
    ended = tool("run", path)
    assert ended.status == 126
    assert "AddressSanitizer" in ended.stderr


@pytest.mark.long("a second each; builds a program for each reason", keep=1)
@pytest.mark.parametrize("make", TRAPS, ids=lambda make: make.__name__)
def test_what_cannot_be_preloaded_is_not_run(
    tool: Tool, compiled: Compile, tmp_path: Path, make: Compile
) -> None:
    if make is setuid and os.geteuid() != 0:
        pytest.skip("only root makes a program that gains rights")
    program = make(tmp_path, compiled)
    name, sentence = TRAPS[make]
    ended = tool("run", program)
    assert ended.status == 126, ended
    assert sentence in ended.stderr
    assert "To fix: " in ended.stderr
    doctor = tool("doctor", "--json", "--", program)
    findings = json.loads(doctor.stdout)["findings"]
    assert doctor.status == 1
    assert [f for f in findings if f["name"] == name and f["verdict"] == "problem" and f["advice"]]


def test_a_program_linked_with_hakmem_is_no_trap(tool: Tool, compiled: Compile, static_lib: Path) -> None:
    ended = tool("run", compiled("crowd", "-static", static_lib), "1")
    assert (ended.status, ended.stdout) == (0, "ready\n")


def finding(tool: Tool, name: str, words: Sequence[str | Path]) -> list[dict[str, str]]:
    ended = tool("doctor", "--json", "--", *words)
    return [f for f in json.loads(ended.stdout)["findings"] if f["name"] == name]


def test_a_library_with_an_allocator_is_advice(tool: Tool, compiled: Compile, tmp_path: Path) -> None:
    """Also where a link elsewhere starts the program, which looks for its library where it lies itself."""
    library = tmp_path / "libpool.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, PROGRAMS / "own_malloc.c"], check=True)
    flags = ["-Wl,--no-as-needed", "-lpool", f"-L{tmp_path}", "-Wl,-rpath,$ORIGIN"]
    program = tmp_path / "elsewhere" / "crowd"
    program.parent.mkdir()
    program.symlink_to(shutil.copy(compiled("crowd", *flags), tmp_path))
    (found,) = finding(tool, "bundled allocator", [program])
    assert found["verdict"] == "advice"
    assert "libpool.so bundles an allocator (mimalloc)" in found["found"]
    assert tool("run", program, "1").status == 0


@pytest.mark.parametrize("compiler", ["gcc", "musl-gcc"])
def test_a_program_runs_once_and_not_to_be_examined(tool: Tool, tmp_path: Path, compiler: str) -> None:
    """Which libraries it would have is asked of its loader; musl's has no way to ask the program."""
    if shutil.which(compiler) is None:
        pytest.skip(f"not installed: {compiler}")
    source, program, runs = tmp_path / "runs.c", tmp_path / "runs", tmp_path / "said"
    source.write_text(
        "#include <stdio.h>\n"
        f'int main(void) {{ FILE *f = fopen("{runs}", "a"); fputs("ran ", f); return fclose(f); }}\n'
    )
    subprocess.run([compiler, source, "-o", program], check=True)
    runs.write_text("")
    tool("doctor", "--", program)
    assert runs.read_text() == ""
    ran = tool("run", "--", program).status == 0  # musl's is refused where the library is for glibc
    assert runs.read_text() == ("ran " if ran else "")
    assert ran == (compiler == "gcc")


def test_a_missing_library_is_named(tool: Tool) -> None:
    ended = tool("run", "true", HAKMEM_LIBRARY="/nowhere/libhakmem.so")
    assert ended.status == 1
    assert "HAKMEM_LIBRARY is /nowhere/libhakmem.so" in ended.stderr
