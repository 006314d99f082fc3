"""The heaps of a program in a recording and on its page: in a real browser, and as series."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from browser import browser_of, seen_in_browser
from hakmem.base.sizes import bytes_text
from hakmem.census.heap_figures import REST_NAME, few_heaps
from hakmem.census.snapshot import open_process, take
from hakmem.views.charts import Chart
from hakmem.views.recording import Recording
from hakmem.views.report import render
from hakmem.views.report_heaps import HEAPS_DRAWN, heap_charts
from results import Find
from tool.conftest import Start, Stepper, Tool
from tool.recordings import write
from tool.test_heaps import CACHE_BYTES, MIB, ODD_TEXT, SMALL_BYTES, heap, told

EVIL = "</script><script>alert(1)</script>"
LOOK = """
const svg = document.querySelector("svg[data-chart=heaps]"), box = svg.getBoundingClientRect();
const at = share => {
  const there = {clientX: box.left + box.width * share, clientY: box.top + 20};
  svg.dispatchEvent(new PointerEvent("pointermove", there));
  return [...document.querySelectorAll("#heaps .tip tr")].map(row => row.textContent);
};
seen.areas = svg.querySelectorAll(".area").length;
seen.legend = document.querySelector("#heaps .legend").textContent;
seen.tips = [at(0.12), at(0.5), at(0.98)];
seen.height = svg.clientHeight;
"""


def recorded(program: Stepper, path: Path) -> None:
    """A sample before the heaps, one with them, and one when one has another's record; a second apart."""
    target = open_process(program.pid)
    recording = Recording.of(target, 1.0)
    recording.samples = [take(target)]
    program.go_on("made")
    recording.samples.append(take(target))
    told(program)
    program.go_on("again")
    recording.samples.append(take(target))
    recording.samples = [
        replace(sample, monotonic_s=float(second)) for second, sample in enumerate(recording.samples)
    ]
    write(recording, path)


@pytest.mark.long("2 seconds; starts a browser")
def test_page_in_a_browser(with_heaps: Start, tool: Tool, program: Find, tmp_path: Path) -> None:
    path, page = tmp_path / "run.json", tmp_path / "run.html"
    recorded(with_heaps(40, step="begun"), path)
    assert tool("record", path, "-o", page).status == 0
    seen = seen_in_browser(page.read_text(), LOOK, browser_of(program), tmp_path)
    assert (seen["faults"], seen["requests"], seen["fits"]) == ([], [], True)
    assert seen["areas"] == HEAPS_DRAWN + 1
    assert int(str(seen["height"])) > 100
    names = ("“cache” (tag 7)", ODD_TEXT, "“main loop” (tag 42, thread)", REST_NAME)
    assert [name for name in names if name not in str(seen["legend"])] == []
    before, made, again = seen["tips"]  # type: ignore[misc]
    assert {*before} >= {"“cache” (tag 7)0 B", f"{ODD_TEXT}0 B", f"{REST_NAME}0 B"}
    assert {*made} >= {f"“cache” (tag 7){bytes_text(CACHE_BYTES)}", f"{ODD_TEXT}1.00 MiB", "“cache”0 B"}
    assert {*again} >= {"“cache” (tag 7)0 B", f"“cache”{SMALL_BYTES} B", f"{ODD_TEXT}1.00 MiB"}
    for tip in (made, again):
        small = [text for text in tip if re.search(r"“request \d+”48 B$", text)]
        drawn = len(small) * 48
        assert f"{REST_NAME}{bytes_text(40 * 48 - drawn)}" in tip
    recording = Recording.read(path)
    recording.samples[1].heaps[0] = heap(EVIL, MIB)
    text = render(recording)
    assert "&lt;script&gt;alert(1)" in text
    assert EVIL not in text


def test_what_is_recorded_has_them(with_heaps: Start, tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    words = ("--for", "100ms", "--every", "50ms", "-o", path)
    assert tool("record", with_heaps().pid, *words).status == 0
    recording = Recording.read(path)
    (chart,) = heap_charts([0.0] * len(recording.samples), recording.samples)
    assert [one.name for one in chart.series][:2] == ["“cache” (tag 7)", ODD_TEXT]
    assert set(chart.series[0].values) <= {CACHE_BYTES, None}


# ---- without a process -------------------------------------------------------------------------------


def chart_of(*samples: list[Any], detail: str = "full") -> list[Chart]:
    found: Any = [SimpleNamespace(detail=detail, heaps=heaps) for heaps in samples]
    return heap_charts([float(number) for number in range(len(found))], found)


def series_of(*samples: list[Any]) -> dict[str, list[float | None]]:
    (chart,) = chart_of(*samples)
    return {one.name: list(one.values) for one in chart.series}


def test_heaps_of_one_name_are_one_area() -> None:
    first = [heap("a", 5, number=1), heap("a", 6, number=2), heap("a", 7, number=3, tag=1)]
    assert series_of(first, [heap("a", 1, number=4)]) == {"“a”": [11, 1], "“a” (tag 1)": [7, 0]}


def test_the_areas_add_up() -> None:
    """Whether a sample has them, or the recording has summed them up."""
    heaps = [heap(f"h{number}", 1000 - number, number=number) for number in range(1, 31)]
    found = series_of(heaps, few_heaps(heaps, 20), [])
    assert [*found] == [*(f"“h{number}”" for number in range(1, HEAPS_DRAWN + 1)), REST_NAME]
    whole = sum(one.live_bytes for one in heaps)
    assert [sum(values[at] or 0 for values in found.values()) for at in range(3)] == [whole, whole, 0]


def test_a_quick_sample_is_a_gap() -> None:
    samples: Any = [
        SimpleNamespace(detail=detail, heaps=[heap("a", 5)]) for detail in ("full", "counters", "full")
    ]
    (chart,) = heap_charts([0.0, 1.0, 2.0], samples)
    assert chart.series[0].values == [5, None, 5]


def test_no_chart_without_heaps() -> None:
    assert chart_of([], []) == []
    assert chart_of([heap("a", 0)]) == []
    assert chart_of([heap("a", 5)], detail="counters") == []
