"""A file that another command of the tool has written: the message names the command that reads it."""

import gzip
from pathlib import Path

import pytest
from hakmem.base.errors import ExitCode
from tool.conftest import Tool


@pytest.mark.parametrize("command", ["diff", "symbolize"])
def test_a_recording_is_no_profile(tool: Tool, run: Path, command: str) -> None:
    ended = tool(command, *[run] * (2 if command == "diff" else 1))
    assert ended.status == ExitCode.FAILED
    assert f"{run} is a recording, not a heap profile; hakmem report {run} shows it" in ended.stderr


@pytest.mark.parametrize("command", ["core", "why", "profile"])
@pytest.mark.parametrize("kind", ["recording", "profile"])
def test_neither_is_a_core(tool: Tool, run: Path, tmp_path: Path, command: str, kind: str) -> None:
    file = run if kind == "recording" else tmp_path / "x.pb.gz"
    if kind == "profile":
        file.write_bytes(gzip.compress(b"profile"))
    ended = tool(command, file)
    assert ended.status == ExitCode.FAILED
    assert "is not a core dump" in ended.stderr
    assert "hakmem symbolize shows a heap profile, hakmem report a recording" in ended.stderr
