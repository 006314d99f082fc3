"""Perl with cloned interpreters, node with worker threads, java with direct buffers: the same output."""

from collections.abc import Callable
from pathlib import Path

import pytest
from real.sides import Side, Sides

PROGRAMS = Path(__file__).parent / "programs"
PERL_LINES = 4
NODE_LINES = 4
JAVA_LINES = 40


def test_perl(sides: Sides, program: Callable[[str], Path]) -> None:
    assert run_script(sides, program("perl"), "work.pl") == PERL_LINES


def test_node(sides: Sides, program: Callable[[str], Path]) -> None:
    assert run_script(sides, program("node"), "work.js") == NODE_LINES


@pytest.mark.long("10 seconds; its collector maps memory itself")
def test_java(sides: Sides, program: Callable[[str], Path]) -> None:
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
