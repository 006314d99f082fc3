"""Perl with cloned interpreters, node with worker threads, java with direct buffers: the same output."""

import hashlib
from pathlib import Path

import pytest
from real.sides import Side, Sides
from results import Find

PROGRAMS = Path(__file__).parent / "programs"
PERL_LINES = 4
NODE_LINES = 4
JAVA_LINES = 40


@pytest.mark.long("2 seconds; one interpreter more")
def test_perl(sides: Sides, program: Find) -> None:
    assert run_script(sides, program("perl"), "work.pl") == PERL_LINES


@pytest.mark.long("4 seconds; the tool's tests watch node")
def test_node(sides: Sides, program: Find) -> None:
    assert run_script(sides, program("node"), "work.js") == NODE_LINES


@pytest.mark.long("10 seconds; its collector maps memory itself")
def test_java(sides: Sides, program: Find) -> None:
    """The runtime compiles the source itself, so Java's own compiler runs on hakmem too."""
    java = program("java")
    if "jdk.compiler" not in sides.glibc.run([java, "--list-modules"]).stdout:
        pytest.skip("this java cannot compile: a runtime without the module jdk.compiler")
    assert run_script(sides, java, "Work.java") == JAVA_LINES


def run_script(sides: Sides, interpreter: Path, script: str) -> int:
    """Runs a script on both sides; returns how many lines it printed."""

    def job(side: Side) -> str:
        return side.run([interpreter, PROGRAMS / script]).stdout

    return len(sides.same(job).splitlines())


# ---- sqlite3: a million rows, indices, joins, full text, vacuum; the same database, byte by byte ---------


@pytest.mark.long("15 seconds; sqlite runs in other tests")
def test_million_rows(sides: Sides, program: Find) -> None:
    sqlite3, script = program("sqlite3"), (PROGRAMS / "rows.sql").read_text()

    def job(side: Side) -> tuple[str, str]:
        output = side.run([sqlite3, "-batch", "-bail", "rows.db"], stdin=script).stdout
        return output, hashlib.sha256((side.folder / "rows.db").read_bytes()).hexdigest()

    output, _ = sides.same(job)
    assert "rows|1000000\n" in output
    assert output.endswith("integrity|ok\n")
