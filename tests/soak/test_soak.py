"""The soak: ten seconds as one test among others, SOAK_MINUTES (30) by `make soak`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import Run

pytestmark = pytest.mark.alone

HERE = Path(__file__).resolve().parent
SECONDS = float(os.environ.get("SOAK_MINUTES", "0")) * 60 or 10
SEED = os.environ.get("SOAK_SEED", "1")


@pytest.mark.long("10 seconds of what other tests do; make soak runs it for longer")
@pytest.mark.timeout(SECONDS + 300)
def test_soak(
    compile_c: Callable[..., Path],
    preload: Run,
    debug_lib: Path,
    tally: Callable[[int, str], None],
) -> None:
    program = compile_c(HERE / "soak.c", INCLUDE_TESTS, "-ldl")
    environment = {"HAKMEM_DECAY_MS": "50"}
    command = [program, str(SECONDS), SEED]
    result = preload(command, env=environment, library=debug_lib, stats=False, timeout=SECONDS + 240)
    assert (result.returncode, result.stderr) == (0, "")
    print(result.stdout)
    tally(int(result.stdout.split()[0]), "sequences")
