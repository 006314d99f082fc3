"""The command line: help, completion, versions; what `make` installs."""

import os
import sys
from pathlib import Path

import pytest
from hakmem import __version__
from hakmem.base.errors import ExitCode
from hakmem.cli import COMMANDS
from results import captured
from tool.conftest import Tool

# What takes a tenth of a second or more to import.
HEAVY = {"numpy", "rich", "textual", "jinja2", "prometheus_client"}


def test_tool_and_library_have_one_version(root: Path, tool: Tool) -> None:
    header = (root / "include/hakmem/hakmem.h").read_text().splitlines()
    parts = ("MAJOR", "MINOR", "PATCH")
    words = {
        line.split()[1]: line.split()[2] for line in header if line.startswith("#define HAKMEM_VERSION_")
    }
    assert __version__ == ".".join(words[f"HAKMEM_VERSION_{part}"] for part in parts)
    assert tool("--version").stdout.split()[-1] == __version__


def test_help_lists_every_command_and_the_exit_statuses(tool: Tool) -> None:
    text = tool("--help").stdout
    assert all(f"  {name} " in text and sentence in text for name, sentence in COMMANDS.items())
    assert "Exit status:" in text


def test_a_former_option_is_told_with_its_successor(tool: Tool) -> None:
    for words, successor in (
        ("run --stats true", "run --env HAKMEM_STATS=1"),
        ("profile --peak 1", "profile --of peak"),
        ("trace show x.hkt", "trace FILE"),
    ):
        ended = tool(*words.split())
        assert ended.status == ExitCode.USAGE
        assert f"; use hakmem {successor}" in ended.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("proflie", "did you mean profile?"),
        ("lekas", "did you mean leaks?"),
        ("./server", "hakmem --help lists"),
        ("tune", "there is no tune; use hakmem replay FILE --with settings"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(tool: Tool, word: str, hint: str) -> None:
    ended = tool(word, "1")
    assert ended.status == ExitCode.USAGE
    assert hint in " ".join(ended.stderr.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_examples(tool: Tool, command: str) -> None:
    ended = tool(command, "--help", COLUMNS="80")
    assert ended.status == 0
    assert "Example" in ended.stdout
    assert f"hakmem {command}" in ended.stdout


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; from hakmem.cli import main; main.main(['--help'], standalone_mode=False);"
    script += f"print(sorted({HEAVY!r} & set(sys.modules)))"
    step = captured([sys.executable, "-c", script], check=True)
    assert step.stdout.splitlines()[-1] == "[]"


def test_completion_offers_commands_and_processes(tool: Tool) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HAKMEM_COMPLETE" in tool("--completion", shell).stdout
    for words, wanted in (("hakmem st", "stat"), (f"hakmem stat {os.getpid()}", str(os.getpid()))):
        count = str(len(words.split()) - 1)
        ended = tool(COMP_WORDS=words, COMP_CWORD=count, _HAKMEM_COMPLETE="bash_complete")
        assert f"plain,{wanted}" in ended.stdout.splitlines()


def test_output_into_a_closed_pipe_ends_quietly(tool: Tool) -> None:
    words = f"{tool.path} doctor | head -n 0"
    step = captured(["bash", "-c", words])
    assert step.stderr == ""
