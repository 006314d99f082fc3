"""The library's own reports list the heaps that the program has made or named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hakmem.census.snapshot import open_process, take
from tool.conftest import Stepper
from tool.processes import PATIENCE_S
from tool.test_heaps import told

NAMES = r"""
#include <stdio.h>
#include "hakmem/hakmem.h"
static char report[1 << 20];
int main(void) {
  static const char *const names[] = {
    "\"quoted\" \\", "caf\xc3\xa9", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xc0\x80",
    "\xf4\x90\x80\x80", "cut\xe2\x82", "tab\there\x7f", "", "0123456789012345678901234567890\xc3\xa9"};
  for (unsigned which = 0; which < sizeof names / sizeof names[0]; which++)
    hak_heap_malloc(hak_heap_new(names[which]), which + 1);
  hak_stats_json(report, sizeof report);
  puts(report);
}
"""
ODD = "\N{REPLACEMENT CHARACTER}"


def test_any_name_is_valid_json(
    tmp_path: Path, compile_c: Callable[..., Path], plain: Callable, lib: Path
) -> None:
    source = tmp_path / "names_of_heaps.c"
    source.write_text(NAMES)
    ended = plain([compile_c(source, lib, f"-Wl,-rpath,{lib.parent}")])
    assert (ended.returncode, ended.stderr) == (0, "")
    heaps = json.loads(ended.stdout)["heaps"]
    assert [heap["name"] for heap in heaps] == [
        '"quoted" \\',
        "café",
        "\N{GRINNING FACE}",
        ODD * 3,
        ODD * 2,
        ODD * 4,
        f"cut{ODD * 2}",
        "tab\there\x7f",
        "",
        "0123456789012345678901234567890",
    ]


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_report_at_exit_says_what_the_tool_says(
    with_heaps: Callable[..., Stepper], tmp_path: Path, form: str
) -> None:
    report = tmp_path / "report"
    program = with_heaps(30, HAKMEM_STATS=f"{form}:{report}")
    seen = [heap for heap in take(open_process(program.pid)).heaps if heap.kind == "program"]
    told(program)
    program.go_on("again")
    program.go_on()
    assert program.process.wait(PATIENCE_S) == 0
    text = report.read_text()
    if form == "text":
        lines = text[text.index("\nheaps\n") :].splitlines()[1:]
        names = ["ses?sions?", "  cache ", "and 14 more"]
        assert all(any(name in line for line in lines) for name in names), lines
        assert lines[0] == "heaps"
        assert len([line for line in lines[2:] if line.endswith((" program", " thread"))]) == 20
        return
    heaps = {heap["name"]: heap for heap in json.loads(text)["heaps"] if heap["kind"] == "program"}
    for heap in seen:
        if heap.name != "cache":  # another one, by now
            known = heaps[heap.name]
            assert (known["live_bytes"], known["live_blocks"]) == (heap.live_bytes, heap.live_blocks)
            assert (known["limit_bytes"], known["refusals"]) == (heap.limit_bytes or 0, heap.refusals)
