"""How the tool begins and ends: the one place where errors become lines, what the environment is made of, and
what ends it."""

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import hakmem
import pytest
from hakmem.base.streams import ALIKE, wants_plain_text
from results import captured
from tool.conftest import Tool
from tool.forked import tool_environment

# Each guards a function that does this.
GUARDED = "import sys; from hakmem.entry import guarded; sys.exit(guarded({function}))"
RAISE = "lambda: (_ for _ in ()).throw({error})"


def guarded(function: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", GUARDED.format(function=function)]
    environment = tool_environment() | variables
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    return subprocess.run(
        words, env=environment, capture_output=True, encoding=encoding, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            "ValueError('what it says')",
            ("bug in the tool", "ValueError: what it says", "HAKMEM_TOOL_DEBUG=1"),
        ),
        ("RecursionError('deep')", ("bug in the tool", "RecursionError")),
        ("MemoryError()", ("out of memory", "ulimit -v")),
        ("ImportError('no numpy')", ("cannot load a part of the tool: no numpy", "reinstall it")),
        ("OSError(5, 'two\\nlines')", ("bug in the tool", "two lines")),
    ],
)
def test_unexpected_errors_are_a_line(error: str, words: Sequence[str]) -> None:
    step = guarded(RAISE.format(error=error))
    assert step.returncode == 1
    assert len(step.stderr.splitlines()) == 1
    assert step.stderr.startswith("hakmem: ")
    assert all(word in step.stderr for word in words), step.stderr


def test_the_traceback_is_shown_when_asked_for() -> None:
    step = guarded(RAISE.format(error="ValueError('x')"), HAKMEM_TOOL_DEBUG="1")
    assert "Traceback" in step.stderr
    assert step.stderr.splitlines()[-1].startswith("hakmem: this is a bug in the tool")


def test_signs_that_a_locale_has_not_are_replaced() -> None:
    step = guarded("lambda: print('≈ █ … ✓ é \\udcff 日') or 0", LC_ALL="C")
    assert step.stdout == "~ # ... + \\xe9 \\udcff \\u65e5\n"
    step = guarded("lambda: print('≈ é \\udcff') or 0", PYTHONIOENCODING="latin-1")
    assert (step.returncode, step.stdout, step.stderr) == (0, "~ é \\udcff\n", "")


def test_what_looks_alike_is_ascii() -> None:
    assert all(str(text).isascii() for text in ALIKE.values())


@pytest.mark.long("2 seconds; reads all sources of the tool")
def test_every_sign_that_the_tool_prints_has_one_that_looks_alike() -> None:
    """Whichever command prints it, and when: each string in the sources but docstrings."""
    missing = {}
    for path in Path(hakmem.__file__).parent.rglob("*.py"):
        for text in strings_of(ast.parse(path.read_text())):
            if signs := {sign for sign in text if not sign.isascii() and ord(sign) not in ALIKE}:
                missing[path.name, text] = signs
    assert missing == {}


def strings_of(module: ast.Module) -> Iterator[str]:
    has_docstring = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = list(ast.walk(module))
    first = [node.body[0] for node in nodes if isinstance(node, has_docstring) and node.body]
    docstrings = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize(
    ("is_plain", "environments"),
    [
        (True, ["LC_ALL=C", "LC_ALL=POSIX", "LANG=C", "LC_ALL= LANG=C"]),
        (False, ["", "LC_ALL=C.UTF-8 LANG=C", "LC_CTYPE=en_US.UTF-8 LANG=C"]),
        (False, ["LC_ALL=C PYTHONIOENCODING=utf-8", "LC_ALL=C PYTHONUTF8=1"]),
    ],
)
def test_only_a_locale_that_is_named_is_plain(is_plain: bool, environments: list[str]) -> None:
    for words in environments:
        assert wants_plain_text(dict(word.split("=") for word in words.split())) == is_plain, words


@pytest.mark.parametrize("variables", [{}, {"LANG": "C"}])
def test_programs_get_the_locale_that_the_user_has(variables: dict[str, str], tool: Tool) -> None:
    """Python sets LC_CTYPE where there is none (PEP 538): `hakmem run` handed it on."""
    environment = {"PATH": os.environ["PATH"], "HAKMEM_LIBRARY": str(tool.library), **variables}
    words = [tool.path, "run", "--", "env"]
    step = captured(words, env=environment, check=True, timeout=60)
    names = {line.partition("=")[0] for line in step.stdout.splitlines()}
    assert names & {"LC_CTYPE", "LC_ALL", "LANG", "HAKMEM_LIBRARY"} == set(variables)


def test_the_entry_loads_nothing_before_signals_are_set() -> None:
    """What comes before is not guarded against Ctrl-C: the package itself, and the module up to its first
    lines."""
    script = "import sys; old = set(sys.modules); import hakmem.entry; print(*sorted(set(sys.modules) - old))"
    step = captured([sys.executable, "-c", script], check=True)
    assert step.stdout.split() == ["hakmem", "hakmem.entry"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_dies_of_the_signal(name: str, tmp_path: Path) -> None:
    """Also in a stretch that puts things in order first."""
    number = signal.Signals[name]
    script = f"""
import os, signal
from hakmem.entry import main
import hakmem.entry, hakmem.base.signals
def command_line(_arguments):
    with hakmem.base.signals.stoppable():
        try:
            os.kill(os.getpid(), {int(number)})
            signal.pause()
        finally:
            open({str(tmp_path / "in order")!r}, "w").close()
hakmem.entry.command_line = command_line
main([])
"""
    step = captured([sys.executable, "-c", script])
    assert (step.returncode, step.stderr) == (-number, "")
    assert (tmp_path / "in order").exists()
