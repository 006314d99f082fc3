"""What the tool says of bytes: what has no pages is no part of RSS; what a purge would return, it does."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hakmem.census.catalogue import MEMORY as FIGURES
from hakmem.census.snapshot import open_process
from hakmem.views.metrics import HakmemCollector
from hakmem.views.recording import Recording
from hakmem.views.report import render
from hakmem.views.watching import MEMORY, VIEWS, Watch
from results import Compile
from tool.conftest import Start, Stepper
from tool.processes import hakmem, hakmem_json, runs

MIB = 1 << 20
NEVER_PURGED = {"HAKMEM_DECAY_MS": "86400000", "HAKMEM_HELPER_THREAD": "0"}
# A page claimed for what is counted in blocks and addresses.
CLAIMS = re.compile(r"of RSS|with their pages|without pages|resident(?!,? or)", re.IGNORECASE)


def words(text: str) -> str:
    return " ".join(text.split())


untouched = runs("known.c", **NEVER_PURGED)


def test_tops_memory_is_no_share_of_rss(untouched: Any) -> None:  # noqa: ANN401
    watch = Watch(open_process(untouched.pid))
    moment = watch.poll() or watch.poll()
    assert moment is not None
    assert moment.snapshot.process is not None
    assert moment.snapshot.memory.live_bytes > moment.snapshot.process.rss_bytes, "else it shows nothing"
    rows = MEMORY.sorted_rows(moment)
    shares = [float(row[-1].split()[0]) for row in rows]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert not any(CLAIMS.search(text) for view in VIEWS for text in view.columns)
    assert not any(CLAIMS.search(row[0]) for row in rows)
    assert any("resident or not" in column for column in MEMORY.columns)


def test_stats_table_says_what_it_counts(untouched: Any) -> None:  # noqa: ANN401
    text = words(hakmem("stat", untouched.pid).stdout)
    assert "All but RSS is counted in blocks and addresses, resident or not" in text


def test_the_pages_areas_and_tiles(untouched: Any, tmp_path: Path) -> None:  # noqa: ANN401
    recording = tmp_path / "run.json"
    hakmem("record", untouched.pid, "--for", "0.5s", "--every", "0.1s", "-o", recording)
    page = render(Recording.read(recording))
    assert "% of RSS" not in page
    assert "areas are not parts of the line" in words(page)


@pytest.mark.usefixtures("untouched")
def test_help_of_metrics() -> None:
    assert not [figure.key for figure in FIGURES if CLAIMS.search(figure.help)]
    by_name = {family.name: family for family in HakmemCollector("full").collect()}
    assert all("resident or not" in by_name[f"hakmem_{figure.key}"].documentation for figure in FIGURES)


def why_around(program: Stepper, step: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """`why` before and after the program's step, and its text before it."""
    before = hakmem_json("why", program.pid)
    text = words(hakmem("why", program.pid).stdout)
    program.go_on(step)
    return before, text, hakmem_json("why", program.pid)


def test_a_purge_returns_what_why_says(stepper: Start, compiled: Compile) -> None:
    program = stepper([compiled("purgeable")], "freed", **NEVER_PURGED)
    before, text, after = why_around(program, "purged")
    returned = before["rss_bytes"] - after["rss_bytes"]
    assert before["purgeable_bytes"] > 15 * MIB, "pages between the blocks that are kept, and the range"
    assert before["purgeable_bytes"] == pytest.approx(returned, abs=MIB), "the caller's caches are beyond it"
    assert after["purgeable_bytes"] < MIB
    assert "hak_purge(true), or malloc_trim, would return about" in text
    assert "in completely free pages" in text


def test_moves_return_what_why_says(stepper: Start, compiled: Compile) -> None:
    program = stepper([compiled("movable")], "sparse", **NEVER_PURGED)
    before, text, after = why_around(program, "moved")
    assert before["movable_bytes"] > 15 * MIB
    assert before["movable_bytes"] == pytest.approx(before["rss_bytes"] - after["rss_bytes"], rel=0.1)
    assert after["movable_bytes"] < MIB
    assert "moving live blocks into fewer slabs would return about" in text
    assert "of 512 B" in text
    assert "Defragmentation:" not in hakmem("why", program.pid).stdout


def test_given_pages_are_no_free_blocks(stepper: Start, compiled: Compile) -> None:
    """After a purge the blocks are free still: `stat` counts them, and does not say that they have pages."""
    program = stepper([compiled("purgeable")], "freed", **NEVER_PURGED)
    program.go_on("purged")
    answer = SimpleNamespace(**hakmem_json("stat", program.pid))
    free_lines = [
        line for line in hakmem_json("why", program.pid)["lines"] if line["name"].startswith("free")
    ]
    assert answer.memory["free_slab_bytes"] > 2 * sum(line["bytes"] for line in free_lines)
