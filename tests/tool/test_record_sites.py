"""`hakmem record --profile` and its page: sites over time, in a file that older versions of the tool read."""

import json
import random
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from browser import Elements, browser_of, seen_in_browser
from hakmem.base.errors import ExitCode, HakmemError
from hakmem.base.validity import built
from hakmem.census.figures import Snapshot
from hakmem.profile.estimate import Estimate
from hakmem.profile.model import Frame
from hakmem.profile.session import is_on
from hakmem.target.target import open_process
from hakmem.views.recording import Recording
from hakmem.views.recording_sites import KEY, SiteHistory, SiteReading, SiteRow
from hakmem.views.report import render
from results import Find
from tool.conftest import Tool
from tool.leases import ends_by_itself
from tool.processes import begun, hakmem, running, runs, wait_until
from tool.recordings import write

KEEPS = "keeps"
PAGE_BYTES_MAX = 1 << 20
PIECES = ("0", "-1", "1", "0.5", "1e15", "18446744073709551616", "null", "true", '"x"', '""', "[]", "{}", "7")


sites = runs("sites.c", flags=["-g"])


def recording(pid: int, path: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    return begun("record", pid, "--profile", "--for", "1h", "--every", "100ms", "-o", path)


@pytest.fixture(scope="module")
def recorded(sites: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Until it has three readings with the site that keeps."""
    path = tmp_path_factory.mktemp("record") / "run.json"
    with recording(sites.pid, path) as recorder:
        wait_until(lambda: path.exists() and len(held_by(path, KEEPS)) >= 3, "no readings", 60.0)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=60)
    assert recorder.returncode == 0
    return path


def held_by(path: Path, function: str) -> list[int]:
    """What a function's site held, by reading, where it was seen."""
    try:
        history = Recording.read(path).sites
    except HakmemError:  # of a line that is being written
        return []
    numbers = {n for n, frames in enumerate(history.sites) if frames and frames[0].function == function}
    return [row.bytes for reading in history.readings for row in reading.rows if row.site in numbers]


@pytest.mark.long("2 seconds of processor time")
def test_the_sites_grow_over_time(recorded: Path, sites: subprocess.Popen[str]) -> None:
    history = Recording.read(recorded).sites
    held = held_by(recorded, KEEPS)
    assert held[-1] > held[0] > 0
    for reading in history.readings:
        parts = sum(row.bytes for row in reading.rows) + reading.before_bytes
        whole = parts + reading.unsampled_bytes + reading.other_bytes
        assert whole == pytest.approx(reading.total_bytes, abs=len(reading.rows) + 5)
    times = [reading.monotonic_s for reading in history.readings]
    assert times == sorted(times)
    assert not is_on(open_process(sites.pid)), "it is off afterwards"


def test_names_stand_there_once(recorded: Path) -> None:
    assert recorded.read_text().count(f'"{KEEPS}"') == 1
    known = Recording.read(recorded).sites.sites
    frames = [frames for frames in known if frames and frames[0].function == KEEPS]
    assert len(frames) == 1
    assert frames[0][0].file.endswith("sites.c")


def test_older_versions_read_it(recorded: Path) -> None:
    """They take a line as a snapshot whose unknown keys are ignored, and the last line by one key."""
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert lines[0]["format_version"] == 2
    assert any(KEY in line for line in lines[1:])
    assert all(built(Snapshot, line).pid for line in lines[1:-1])
    assert isinstance(lines[-1]["ended"], str)


def test_what_is_read_can_be_written_again(recorded: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    recording = Recording.read(recorded)
    write(recording, again)
    other = Recording.read(again).sites
    assert other.readings == recording.sites.readings
    assert other.sites == recording.sites.sites


def test_without_the_option_there_is_nothing_of_it(sites: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    hakmem("record", sites.pid, "--for", "300ms", "--every", "100ms", "-o", path)
    assert not [line for line in path.read_text().splitlines() if KEY in json.loads(line)]
    hakmem("record", path)
    assert "sites" not in Elements(path.with_suffix(".html").read_text()).ids


@pytest.mark.long("2 seconds of processor time")
def test_killed_it_keeps_what_it_had(sites: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with recording(sites.pid, path) as recorder:
        wait_until(lambda: path.exists() and held_by(path, KEEPS), "no readings", 60.0)
        recorder.kill()
        recorder.wait()
    assert held_by(path, KEEPS)
    hakmem("record", path)
    assert ends_by_itself(sites.pid)


def test_a_profile_that_was_on_stays_on(sites_program: Path, lib: Path, tmp_path: Path) -> None:
    with running([sites_program], lib) as process:
        hakmem("profile", process.pid, "--on")
        wait_until(lambda: is_on(open_process(process.pid)), "it does not go on")
        step = hakmem("record", process.pid, "--profile", "--for", "300ms", "-o", tmp_path / "run.json")
        assert "the profile was on already, and stays on" in step.stderr
        assert is_on(open_process(process.pid))


@pytest.mark.long("a second of processor time")
def test_a_process_that_ends(sites_program: Path, lib: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with running([sites_program], lib) as process, recording(process.pid, path) as recorder:
        wait_until(lambda: path.exists() and bool(held_by(path, KEEPS)), "no reading", 60.0)
        process.kill()
        said, complained = recorder.communicate(timeout=60)
    assert recorder.returncode == 0
    assert "the process ended" in said
    assert complained == ""
    assert held_by(path, KEEPS)


def test_refusals_are_told_before_anything_is_written(sites_program: Path, lib: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("an old recording")
    with running([sites_program], lib, {"HAKMEM_PROFILE": "never"}) as process:
        step = hakmem("record", process.pid, "--profile", "-o", path, status=ExitCode.FAILED)
    assert "refuses heap profiles" in step.stderr
    assert len(step.stderr.splitlines()) == 1
    assert path.read_text() == "an old recording"


def named_part(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The readings of a line that bring names: the very first may be of no site."""
    return [part for part in data.get(KEY, []) if part["names"]]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda part: part.update(rows=[[999, 1, 1, 1, 1]]), "no name"),
        (lambda part: part.update(rows=[[0, -5, 1, 1, 1]]), "invalid value"),
        (lambda part: part.update(rows=[[0, "x", 1, 1, 1]]), "invalid value"),
        (lambda part: part.update(rows=[[0]]), "damaged"),
        (lambda part: part.update(total_bytes=None), "total_bytes"),
        (lambda part: part.pop("names"), "'names' is missing"),
        (lambda part: part.update(names=[[[1, 2, 3]]]), "invalid value"),
        (lambda part: part.update(columns=["site", "bytes", "x", "y", "z"]), "damaged"),
    ],
)
def test_damage_is_told(
    recorded: Path, tmp_path: Path, change: Callable[[dict[str, object]], None], complaint: str
) -> None:
    lines = recorded.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if named_part(json.loads(line)))
    data = json.loads(lines[place])
    change(named_part(data)[0])
    bad = tmp_path / "bad.json"
    bad.write_text("\n".join([*lines[:place], json.dumps(data), *lines[place + 1 :]]) + "\n")
    step = hakmem("record", bad, status=1)
    assert f"is damaged in line {place + 1}" in step.stderr
    assert complaint in step.stderr
    assert len(step.stderr.splitlines()) == 1


# ---- the page -----------------------------------------------------------------------------------------

MIB = 1 << 20
SOURCE = {"leaks": "leak.cc", "steady": "steady.cc", "noisy": "noisy.cc"}
COURSE = {"leaks": (1, 4, 9), "steady": (20, 20, 20), "noisy": (5, 5.2, 5.1)}


@pytest.fixture(scope="module")
def history(recorded: Path) -> Recording:
    """The recording, with figures that are known in place of its own: three readings, in MiB."""
    recording = Recording.read(recorded)
    first_s, last_s = recording.samples[0].monotonic_s, recording.samples[-1].monotonic_s
    recording.sites = SiteHistory(
        [(Frame(name, f"/src/{file}", 7), Frame("main", "/src/main.cc", 1)) for name, file in SOURCE.items()]
    )
    for step in range(3):
        rows = [
            SiteRow(n, round(COURSE[name][step] * MIB), MIB // 4, 1000, 300) for n, name in enumerate(COURSE)
        ]
        held = sum(row.bytes for row in rows)
        time_s = first_s + (last_s - first_s) * step / 2
        recording.sites.readings.append(SiteReading(time_s, held + 12 * MIB, 10 * MIB, MIB, MIB, 3, rows))
    return recording


def test_page_has_sites_and_loads_nothing(history: Recording) -> None:
    text = render(history)
    elements = Elements(text)
    assert elements.loaded == []
    assert {"sites_over_time", "sites", "memory"} <= set(elements.ids)
    assert not re.search(r"https?://|@import|url\(", text)
    assert len(text) < PAGE_BYTES_MAX


def test_names_are_only_text(history: Recording) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    kept = history.sites.sites
    history.sites.sites = [(Frame(evil, evil, 1),) for _ in kept]
    text = render(history)
    history.sites.sites = kept
    assert "<script>alert" not in text
    assert "<img" not in text


LOOK = """
const rows = () => [...document.querySelectorAll("#sites tbody tr")];
const column = number => rows().map(row => row.cells[number].textContent);
const click = number => document.querySelectorAll("#sites th")[number].click();
const svg = document.querySelector("svg[data-chart=sites_over_time]"), box = svg.getBoundingClientRect();
seen.areas = svg.querySelectorAll(".area").length;
const end = {clientX: box.left + box.width * 0.99, clientY: box.top + 20};
svg.dispatchEvent(new PointerEvent("pointermove", end));
seen.tip = document.querySelector("#sites_over_time .tip").textContent;
seen.legend = document.querySelector("#sites_over_time .legend").textContent;
seen.sites = column(7);
seen.bytes = column(0);
seen.grown = column(2);
seen.quiet = rows().map(row => row.cells[2].classList.contains("quiet"));
click(2);
seen.byGrowth = column(7);
click(7);
seen.byName = column(7);
seen.rest = [...document.querySelectorAll("#sites tfoot tr")].map(row => row.textContent.trim());
"""


@pytest.fixture(scope="module")
def seen(history: Recording, program: Find, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("browser")
    return seen_in_browser(render(history), LOOK, browser_of(program), folder)


def words(names: object) -> list[str]:
    assert isinstance(names, list)
    return [name.split(" ")[0] for name in names]


@pytest.mark.long("a second; starts a browser")
def test_page_runs_in_a_browser(seen: dict[str, object]) -> None:
    assert seen["faults"] == []
    assert seen["requests"] == []
    assert seen["fits"]


def test_chart_stacks_the_sites(seen: dict[str, object]) -> None:
    assert seen["areas"] == 6, "three sites, other sites, classes without a sample, before the profile"
    assert "leaks:7 ← main:1" in str(seen["legend"])
    assert re.search(r"leaks:7 ← main:19\.00 MiB", str(seen["tip"]))
    assert "before the profile began10.0 MiB" in str(seen["tip"])


def test_table_tells_growth_and_whether_it_is_more_than_chance(seen: dict[str, object]) -> None:
    assert words(seen["sites"]) == ["steady", "leaks", "noisy"]
    assert seen["grown"] == ["0 B", "+8.00 MiB", "+102 KiB"]
    assert seen["quiet"] == [True, False, True]
    assert words(seen["byGrowth"])[0] == "leaks"
    assert words(seen["byName"]) == ["leaks", "noisy", "steady"]
    assert any("before the profile began" in str(row) for row in seen["rest"])  # type: ignore[attr-defined]
    assert any(str(row).startswith("46.1 MiB") for row in seen["rest"]), seen["rest"]  # type: ignore[attr-defined]


def test_estimates_of_rows() -> None:
    assert SiteRow(0, 100, 10, 5, 7).estimate == Estimate(100, 100, 7)


@pytest.mark.long("8 seconds of damaged files; test_hostile_files has some")
def test_any_damage_is_told_or_drawn(recorded: Path, tmp_path: Path) -> None:
    """Values of the readings exchanged for others: never anything but a page or one sentence."""
    chance, lines, bad = random.Random(13), recorded.read_text().splitlines(), tmp_path / "bad.json"
    places = [number for number, line in enumerate(lines) if f'"{KEY}":[' in line]
    outcomes = {True: 0, False: 0}
    for _ in range(200):
        place = chance.choice(places)
        head, key, text = lines[place].rpartition(f'"{KEY}":[')
        values = list(re.finditer(r'(?<=[:,\[])(-?[\d.e+]+|"[^"]*"|\[\])(?=[,\]}])', text))
        for match in sorted(chance.sample(values, chance.randint(1, 3)), key=lambda one: -one.start()):
            text = text[: match.start()] + chance.choice(PIECES) + text[match.end() :]
        bad.write_text("\n".join([*lines[:place], head + key + text, *lines[place + 1 :]]) + "\n")
        try:
            render(Recording.read(bad))
            outcomes[True] += 1
        except HakmemError as error:
            outcomes[False] += 1
            assert "\n" not in str(error)
    assert min(outcomes.values()) > 10, outcomes


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("record", ("--profile", "which call sites hold the memory over time")),
        ("export", ("--profile", "--each", "Switch heap profiles on")),
        ("top", ("Table 6", "o switches one on", "z counts growth from now")),
    ],
)
def test_help_tells_of_it(command: str, words: tuple[str, ...]) -> None:
    said = " ".join(hakmem(command, "--help").stdout.split())
    assert all(text in said for text in words)


@pytest.mark.parametrize("command", ["record", "export"])
def test_completion_offers_it(tool: Tool, command: str) -> None:
    variables = {"COMP_WORDS": f"hakmem {command} --pro", "COMP_CWORD": "2"}
    assert "--profile" in tool(_HAKMEM_COMPLETE="bash_complete", **variables).stdout
