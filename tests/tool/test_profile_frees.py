"""Sampled blocks are freed as others are: by their own and by other threads, of all sizes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tool.conftest import Tool
from tool.processes import running


@pytest.mark.parametrize("build", ["lib", "debug_lib"])
def test_frees_of_sampled_blocks(
    tool: Tool, compiled: Callable[..., Path], build: str, request: pytest.FixtureRequest
) -> None:
    """No free takes a sample's slab for a Large range, to file it in a magazine that is none."""
    library = request.getfixturevalue(build)
    with running([compiled("frees_of_all_kinds", "-pthread")], library) as process:
        ended = tool("profile", process.pid, "--for", "2s", "--period", "4096", "--allocated", "--json")
        assert ended.status == 0, ended.stderr
        assert "ended while" not in ended.stderr
        assert tool("profile", process.pid, "--for", "200ms").status == 0
        assert process.poll() is None, process.returncode
    assert json.loads(ended.stdout)["sites"]
