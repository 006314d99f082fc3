"""What hakmem's own reporting calls write, and where; glibc's are in tests/glibc."""

import json
import re
from pathlib import Path

import pytest
from modes import OWN_API_MODES
from results import Run

HERE = Path(__file__).resolve().parent


def class_counters(root: Path) -> list[str]:
    table = (root / "src/base/counters.def").read_text()
    return re.findall(r"^CLASS_COUNTER\((\w+),", table, re.M)


@pytest.mark.parametrize("mode", OWN_API_MODES)
def test_hak_stats_print_writes_to_its_descriptor(mode: str, run_program: Run) -> None:
    result = run_program(HERE / "hak_stats_print.c", mode)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("hakmem")
    assert result.stdout.endswith("\n")
    assert "refill" in result.stdout


@pytest.mark.parametrize("mode", OWN_API_MODES)
def test_hak_stats_json_is_the_report_at_exit(mode: str, root: Path, run_program: Run) -> None:
    result = run_program(HERE / "hak_stats_json.c", mode)
    assert (result.returncode, result.stderr) == (0, "")
    report = json.loads(result.stdout)
    (at_exit,) = result.stats
    assert report.keys() == at_exit.keys()
    assert report["counters"].keys() == at_exit["counters"].keys()
    assert report["hakmem"] == "0.1.0"
    assert report["pid"] == at_exit["pid"]
    assert report["counters"]["refilled_blocks"] > 0
    assert report["memory"]["mapped_bytes"] > 0
    sizes = [entry["block_bytes"] for entry in report["classes"]]
    assert sizes == sorted(set(sizes)), "one entry for each class, smallest first"
    assert sizes[0] == 8
    names = {"class", "tier", "block_bytes", *class_counters(root)}
    assert all(entry.keys() == names for entry in report["classes"]), "counters alone: nothing is walked"
    assert sum(entry["refilled_blocks"] for entry in report["classes"]) > 0
