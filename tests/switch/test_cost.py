"""What a profile costs while it is on, in instructions: of each request; and of a free that is no sample."""

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from batches import QUIET, cost_of
from results import Compile

PROGRAM = Path(__file__).parent / "cost.c"
BLOCKS = 5000  # as in the program
# Instructions that a request takes more: what the slow function does, and its share of a lot, where a refill
# without a profile climbs no ladder.
MOST = {"malloc": 21.5, "calloc": 23.8, "realloc": 21, "aligned": 16.5, "new": 25.7, "mid": 36.4}
# Diverts, and is so long that nothing is a sample.
LONG_PERIOD = {"HAKMEM_PROFILE": "1T"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="counted on x86-64 only")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="not installed: valgrind")
def test_a_request_costs_little_and_a_free_nothing(
    compile_c: Compile, preload: Callable, tmp_path: Path
) -> None:
    program = compile_c(PROGRAM, "-O1", "-ldl")
    profiles = {}
    for name, options in (("off", {}), ("on", LONG_PERIOD)):
        file = tmp_path / name
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}", "--compress-strings=no"]
        assert preload([*tool, program], stats=False, env=QUIET | options).returncode == 0
        profiles[name] = file.read_text()

    def more(function: str) -> float:
        off, on = (cost_of(profiles[name], function) for name in ("off", "on"))
        assert off > 0
        return (on - off) / BLOCKS

    requests = {kind: more(f"take_{kind}") for kind in MOST}
    frees = {kind: more(f"give_{kind}") for kind in MOST}
    assert {kind: cost for kind, cost in requests.items() if not 5 < cost <= MOST[kind]} == {}
    assert {kind: cost for kind, cost in frees.items() if abs(cost) > 0.5} == {}
