"""Other code in the process maps memory where the allocator's lay, lies, or would lie next."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run

HERE = Path(__file__).resolve().parent
MODES = ["preload", "preload-debug", "static"]
MODES_AND_HARDENED = [*((mode, {}) for mode in MODES), ("preload-debug", {"HAKMEM_HARDEN": "1"})]


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize(("mode", "options"), MODES_AND_HARDENED)
def test_in_the_holes(mode: str, options: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / "foreign_in_holes.c", mode, env=options))


@pytest.mark.parametrize(("tib", "times"), [("1", "1"), ("1", "4"), ("5", "2")])
@pytest.mark.parametrize("mode", MODES)
def test_walls(mode: str, tib: str, times: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "foreign_wall.c", mode, args=[tib, times]))


@pytest.mark.parametrize("gib", ["1", "16"])
def test_walls_before_a_small_window(gib: str, run_program: Run) -> None:
    """What others have does not count for its size: here its maps must grow many times over."""
    result = run_program(
        HERE / "foreign_wall.c", "preload-debug", args=["3", "1"], env={"HAKMEM_WINDOW_GIB": gib}
    )
    if gib == "1":  # smaller than what the program wants to have at once
        assert "bytes" in result.stderr
    else:
        assert_clean(result)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize(("mode", "options"), MODES_AND_HARDENED)
def test_at_random(mode: str, options: dict[str, str], seed: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "foreign_at_random.c", mode, args=[seed], env=options))
