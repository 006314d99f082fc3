"""The keeper of `hakmem run --profile` shares the program's memory, and nothing of it is seen in there."""

import socket
import tempfile
from pathlib import Path

import target
from kernel_calls import place_of_calls
from modes import assert_silent
from results import Run

HERE = Path(__file__).resolve().parent


@target.not_there
def test_errno_is_the_programs(run_program: Run, lib: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as tool:
        path = Path(folder) / "keepers"
        tool.bind(str(path))
        tool.listen(8)
        options = {"HAKMEM_KEEPER": str(path)} | place_of_calls(lib)
        assert_silent(run_program(HERE / "keeper_errno.c", "preload", env=options, stats=False))
