"""The keeper of `hakmem run --profile` shares the program's memory, and nothing of it is seen in there."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import target

if TYPE_CHECKING:
    from conftest import Result

HERE = Path(__file__).resolve().parent
Run = Callable[..., "Result"]


@target.not_there
def test_errno_is_the_programs(run_program: Run) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as tool:
        path = Path(folder) / "keepers"
        tool.bind(str(path))
        tool.listen(8)
        options = {"HAKMEM_KEEPER": str(path)}
        result = run_program(HERE / "keeper_errno.c", "preload", "-rdynamic", env=options, stats=False)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
