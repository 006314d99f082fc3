"""hakmem trace --sampled: programs/traced.c, and a log that comes round faster than it is read."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hakmem.target.target import open_process
from hakmem.trace.file import Writer
from hakmem.trace.sampled import COLUMNS, SampledLives, read_sampled, record_sampled
from hakmem.trace.sampled_figures import sampled_figures_of
from results import Compile
from tool.conftest import Start, Tool
from tool.test_trace import HANDED

LONG_S, BUSY_AT_S = 2.0, 0.7


@pytest.fixture
def lives(
    stepper: Start, compiled: Compile, tmp_path: Path, request: pytest.FixtureRequest
) -> tuple[Path, SampledLives, dict[str, Any]]:
    """What was recorded with a period of so many bytes."""
    program, path = stepper([compiled("traced", "-pthread")], "ready"), tmp_path / "s.hkt"
    threading.Timer(BUSY_AT_S, program.go_on).start()
    end = record_sampled(open_process(program.pid), path, LONG_S, lambda *_: None, request.param)
    program.wait_for("done")
    return path, read_sampled(path), end


@pytest.mark.parametrize("lives", [65536], indirect=True)
def test_what_the_program_did(lives: tuple[Path, SampledLives, dict[str, Any]], tool: Tool) -> None:
    path, found, end = lives
    assert (end["end"], end["lost"]) == ("duration reached", 0)
    figures = sampled_figures_of(found)
    row = next(row for row in figures.sizes if row.up_to_bytes == 4096)
    assert row.blocks == pytest.approx(HANDED, rel=0.15)  # some 900 samples
    assert row.live_bytes == 0
    assert row.median_life_ns
    handed = next(site for site in figures.sites if site.frames[0].function == "take")
    assert handed.freed_elsewhere == 1
    assert figures.freed_elsewhere > 0.9
    shown = tool("trace", path).stdout
    assert "take (traced.c:" in shown
    assert tool.json("trace", path)["figures"]["sites"]
    whole = path.read_bytes()
    for length in range(whole.index(b"\n") + 1, len(whole), len(whole) // 7):
        path.write_bytes(whole[:length])
        assert "the file was cut off" in tool("trace", path).stdout


@pytest.mark.parametrize("lives", [64], indirect=True)
def test_what_comes_too_fast_is_counted(lives: tuple[Path, SampledLives, dict[str, Any]]) -> None:
    _, found, end = lives
    seen = int((found.columns["size"] == 3000)[found.columns["is_freed"] == 1].sum())
    assert end["lost"] > 0
    assert HANDED <= seen + end["lost"] <= HANDED * 1.02
    assert sampled_figures_of(found).freed_blocks == pytest.approx(HANDED, rel=0.05)


def test_a_recording_without_any_life(tmp_path: Path) -> None:
    path = tmp_path / "x.hkt"
    writer = Writer(path, {"sampled": True})
    writer.table("lives", {name: np.empty(0, kind) for name, kind in COLUMNS.items()})
    writer.close()
    assert len(read_sampled(path).columns["size"]) == 0
