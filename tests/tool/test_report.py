"""The page of `hakmem record` in a real browser, without a request, in both colour schemes."""

import re
from pathlib import Path

import pytest
from browser import LOOK_AT_CHARTS, Elements, browser_of, seen_in_browser
from hakmem.base.sizes import bytes_text, count_text, sparkline
from hakmem.views.charts import Chart, Series, tick_step
from hakmem.views.recording import Recording
from results import Compile, Find
from tool.processes import PROGRAMS, hakmem, running
from tool.recordings import write

CHARTS = ("memory", "classes", "stages", "remote", "faults", "os_calls", "threads", "caches")
PAGE_BYTES_MAX = 1 << 20


@pytest.fixture(scope="module")
def run(lib: Path, compile_c: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of threads that allocate."""
    path = tmp_path_factory.mktemp("report") / "run.json"
    with running([compile_c(PROGRAMS / "busy.c"), "3600"], lib) as process:
        hakmem("record", process.pid, "--for", "800ms", "--every", "50ms", "-o", path)
    return path


@pytest.fixture(scope="module")
def page(run: Path) -> Path:
    """Its page."""
    step = hakmem("record", run)
    path = run.with_suffix(".html")
    assert str(path) in step.stdout
    return path


def test_page_loads_nothing(page: Path) -> None:
    text = page.read_text()
    assert Elements(text).loaded == []
    assert not re.search(r"https?://|@import|url\(", text)
    assert len(text) < PAGE_BYTES_MAX


def test_page_has_every_chart_and_its_explanation(page: Path) -> None:
    ids = Elements(page.read_text()).ids
    assert [name for name in CHARTS if name not in ids] == []
    sections = page.read_text().split("<section")[1:]
    for section in sections:
        explanation = re.search(r"<p>(.*?)</p>", section, re.DOTALL)
        assert explanation is not None
        assert len(explanation[1]) > 40


def test_page_tells_the_counters_of_the_recording(run: Path, page: Path) -> None:
    samples = Recording.read(run).samples
    grown = samples[-1].counters["refills"] - samples[0].counters["refills"]
    row = re.search(r"<code>refills</code></td><td class=\"n\">(.*?)</td>", page.read_text())
    assert row is not None
    assert row[1] == count_text(grown)


def test_text_of_the_program_is_only_text(run: Path, tmp_path: Path) -> None:
    """A command line may hold anything."""
    recording = Recording.read(run)
    recording.command = ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>']
    evil = tmp_path / "evil.json"
    write(recording, evil)
    hakmem("record", evil)
    text = evil.with_suffix(".html").read_text()
    assert "<script>alert" not in text
    assert "<img" not in text


def test_one_sample_is_too_few(run: Path, tmp_path: Path) -> None:
    recording = Recording.read(run)
    del recording.samples[1:]
    short = tmp_path / "short.json"
    write(recording, short)
    assert "record for longer" in hakmem("record", short, status=1).stderr


# ---- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen(page: Path, program: Find, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the page is in a browser, told by the browser."""
    folder = tmp_path_factory.mktemp("browser")
    return seen_in_browser(page.read_text(), LOOK_AT_CHARTS, browser_of(program), folder)


@pytest.mark.long("2 seconds; starts a browser")
def test_page_runs_without_faults_and_requests(seen: dict[str, object]) -> None:
    assert seen["faults"] == []
    assert seen["requests"] == []


def test_charts_are_drawn(seen: dict[str, object]) -> None:
    assert int(str(seen["shown"])) >= len(CHARTS)
    assert int(str(seen["areas"])) >= 3
    assert seen["fits"]


def test_pointer_shows_values(seen: dict[str, object]) -> None:
    assert re.search(r"RSS.*(KiB|MiB)", str(seen["tip"]))


def test_button_switches_colours(seen: dict[str, object]) -> None:
    assert seen["before"] != seen["after"]


# ---- drawing ----------------------------------------------------------------------------------------


def chart(*series: Series, is_stacked: bool = False) -> Chart:
    """A chart of five moments."""
    return Chart("x", "A title", "How to read it.", [0, 1, 2, 3, 4], series, count_text, is_stacked)


def heights(svg: str, kind: str) -> list[list[float]]:
    """The y coordinates of each shape."""
    return [
        [float(point.split(",")[1]) for point in points.split()]
        for points in re.findall(rf'class="{kind}[^"]*" points="([^"]*)"', svg)
    ]


def test_missing_values_leave_a_gap() -> None:
    svg = chart(Series("a", [1, 2, None, 4, 5])).svg
    assert [len(ys) for ys in heights(svg, "stroke")] == [2, 2]


def test_lone_values_are_dots() -> None:
    assert chart(Series("a", [None, 2, None, None, None])).svg.count("<circle") == 1


def test_layers_stand_on_each_other() -> None:
    svg = chart(Series("a", [1] * 5), Series("b", [3] * 5), is_stacked=True).svg
    lower, upper = heights(svg, "area")
    assert min(upper) < min(lower)  # y grows downwards
    assert max(upper) == pytest.approx(min(lower))


def test_nothing_happened() -> None:
    """A chart of zeros is drawn, not divided by."""
    assert "polyline" in chart(Series("a", [0.0] * 5)).svg


@pytest.mark.parametrize(
    ("peak", "is_binary", "step"), [(100, False, 20), (7, False, 2), (4 << 20, True, 1 << 20)]
)
def test_grid_lines_stand_at_round_values(peak: float, is_binary: bool, step: float) -> None:
    assert tick_step(peak, is_binary) == pytest.approx(step)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (10 << 20, "10.0 MiB"), (-2048, "-2.00 KiB")],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert bytes_text(count) == text


def test_sparkline() -> None:
    assert sparkline([0, 1, 2, 4], 6) == "  ▁▃▅█"
    assert sparkline([0, 0], 2) == "▁▁"
