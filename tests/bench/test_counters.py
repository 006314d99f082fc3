"""The table of hakmem's own counters is made of what the library really reports."""

import io
from pathlib import Path

from harness.allocators import Allocator
from harness.build import build_program
from harness.execute import reported_run
from harness.tables import counters_table
from rich.console import Console


def test_a_real_report_fills_the_table(lib: Path) -> None:
    report = reported_run(build_program("tiny_hot"), ["--seconds", "0.05"], Allocator("hakmem", lib))
    assert report["measured"]["refills"] <= report["exit"]["refills"]
    table = counters_table({"hakmem_reports": {"tiny_hot": report}})
    assert table is not None
    said = io.StringIO()
    Console(file=said, width=200).print(table)
    row = next(line for line in said.getvalue().splitlines() if line.lstrip("│┃ ").startswith("tiny_hot"))
    assert "%" in row
    assert f"{report['exit']['os_maps']:,}" in row
