"""Commands that pages name exist: `hakmem COMMAND --option`, `make TARGET`."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from shape.test_docs import OF_TODAY, ROOT


def code_of(page: Path) -> Iterator[str]:
    """Lines of blocks, fenced or indented, and what is between backquotes; without what a shell puts in."""
    text = re.sub(r"\$\([^()]*\)", "PID", page.read_text())
    blocks = re.findall(r"^ *```.*?^ *```", text, re.MULTILINE | re.DOTALL)
    yield from (line for block in blocks for line in block.splitlines())
    yield from re.findall(r"^ {4}.*", text, re.MULTILINE)
    yield from (
        " ".join(span.split())
        for span in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    )


def faults_of(line: str, options: dict[str, set[str]]) -> list[str]:
    """What the tool would not understand; columns of explanation and other programs' words are left out."""
    found = []
    for command, rest in re.findall(r"(?:^|[;&|$#] *|^ +)hakmem ([a-z]+)\b([^|;#]*)", line):
        if command not in options:
            found.append(f"hakmem {command}")
            continue
        words = re.split(r" -- |\s{3,}", rest)[0]
        spelt = re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z]\b)", words)
        found.extend(f"hakmem {command} {option}" for option in spelt if option not in options[command])
    return found


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    pytest.importorskip("hakmem.cli", reason="without a package index the tool is left out (make-tool)")
    import click
    from hakmem.cli import COMMANDS, main

    known: dict[str, set[str]] = {}
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        commands = [command, *getattr(command, "commands", {}).values()]
        parameters = [each for one in commands for each in one.get_params(click.Context(one))]
        known[name] = {spelling for each in parameters for spelling in (*each.opts, *each.secondary_opts)}
    return known


def test_commands_of_the_tool_have_the_options_that_pages_name(options: dict[str, set[str]]) -> None:
    lines = [(page, line) for page in OF_TODAY for line in code_of(page)]
    assert sum("hakmem " in line for _, line in lines) > 100
    assert not [f"{page.name}: {fault}" for page, line in lines for fault in faults_of(line, options)]


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("hakmem why PID --all", []),
        ("$ hakmem leaks PID --forever", ["hakmem leaks --forever"]),
        ("hakmem where PID", ["hakmem where"]),
        ("hakmem run --profile -o x -- ls --color      shows --nothing", []),
        ("    hakmem stat PID | grep --x", []),
    ],
)
def test_what_does_not_exist_is_noticed(line: str, faults: list[str], options: dict[str, set[str]]) -> None:
    assert faults_of(line, options) == faults


def test_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (page.name, target)
        for page in OF_TODAY
        for line in code_of(page)
        for target in re.findall(r"^(?:sudo )?make ([a-z][a-z0-9-]*)", line)
    }
    assert len(named) > 20
    assert not [f"{page}: make {target}" for page, target in named if target not in targets]


DEVELOPERS = [
    "bench/run", "bench/musl", "bench/profilers/run", "bench/rust/run", "lab/run",
    "lab/coherence/run", "lab/traces/run",
    "scripts/dist", "scripts/mutate", "scripts/pack-crates", "scripts/wheel",
]  # fmt: skip


@pytest.mark.parametrize("script", DEVELOPERS)
def test_developers_scripts_print_their_help(script: str) -> None:
    told = subprocess.run([ROOT / script, "--help"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("usage:")
