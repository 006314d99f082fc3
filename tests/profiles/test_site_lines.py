"""A site is a line of code, in every view, file and format; functions are a grouping."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hakmem.blocks.evidence import gather_evidence
from hakmem.blocks.growing import Watched
from hakmem.profile.difference import difference
from hakmem.profile.folded import to_folded
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Frame, Mapping, Profile
from hakmem.profile.names import Sources
from hakmem.profile.sites import site_table
from hakmem.trace.sampled import SampledLives
from hakmem.trace.sampled_figures import sampled_figures_of
from hakmem.views.leaks_text import site_text
from hakmem.views.metrics_sites import SiteMetrics, _Followed
from hakmem.views.profile_page import flame_data, render
from hakmem.views.profile_text import show_profile
from hakmem.views.recording_sites import SiteHistory
from hakmem.views.report_sites import label
from preload import clean_environment
from profiles.worlds import Load, drawn, profile_of, stack_of
from results import Compile
from tool.conftest import Tool

SOURCE = Path(__file__).parent / "programs" / "two_lines.c"
BUILD, OTHER_BUILD = "ab" * 20, "cd" * 20


def two_lines(build: str = BUILD, first_line: int = 6) -> Profile:
    """A function that holds 1 MiB blocks of two lines, called from one line of main."""
    loads = [Load(0, 1 << 20, 40), Load(1, 1 << 20, 60)]
    made = profile_of(drawn(loads, np.random.default_rng(1), rates=(1,)))
    made.header = replace(made.header, began_s=1.0, ended_s=2.0)
    made.mappings = [Mapping(0x1000, 0x700000, 0x1000, "/opt/two", build)]
    for place in range(2):
        made.names[stack_of(place)[0] - 1] = (Frame("fill", "/src/two.c", first_line + 2 * place),)
    made.names[0x500000] = (Frame("main", "/src/two.c", 20),)
    return made


def of_table(profile: Profile) -> list[str]:
    labels = Labels(profile)
    table = site_table(profile, labels.key(DEPTH))
    return [site_text(labels.site(site.stack, DEPTH)).plain for site in table.sites]


def of_folded(profile: Profile) -> list[str]:
    return [line.rpartition(" ")[0] for line in to_folded(profile).splitlines()]


def of_flame(profile: Profile) -> list[str]:
    data = flame_data(profile, Labels(profile))
    return [data["names"][stack[-1]] for stack, *_ in data["stacks"]]


def of_recording(profile: Profile) -> list[str]:
    history = SiteHistory()
    history.add(profile, 1.0)
    return [label(frames) for frames in history.sites]


def of_metrics(profile: Profile) -> list[str]:
    names = SimpleNamespace(missing=lambda _profile: set())
    followed = _Followed(SimpleNamespace(names=names))  # type: ignore[arg-type]
    return [":".join(name) for name in SiteMetrics()._chosen(site_table(profile), profile, followed)[0]]


def of_difference(profile: Profile) -> list[str]:
    return [site_text(change.frames).plain for change in difference(Profile(), profile).changes]


def of_leaks(profile: Profile) -> list[str]:
    made = replace(profile, blocks=list(range(len(profile.samples))))
    found = gather_evidence(Watched(made, replace(made, samples=[], blocks=[])), None, Sources())
    assert found is not None
    return [site_text(site.frames).plain for site in found.sites]


def of_trace(profile: Profile) -> list[str]:
    names = {
        number: [tuple(vars(frame).values()) for frame in profile.names[stack_of(number)[0] - 1]]
        for number in range(2)
    }
    columns = {
        name: np.array([0, 1])
        for name in ("site", "size", "blocks", "born_ns", "lived_ns", "is_freed", "thread", "freed_by")
    }
    lives = SampledLives({}, columns, names, None, 0)  # type: ignore[arg-type]
    return [site_text(row.frames).plain for row in sampled_figures_of(lives).sites]


VIEWS = [of_table, of_folded, of_flame, of_recording, of_metrics, of_difference, of_leaks, of_trace]


@pytest.mark.parametrize("view", VIEWS)
def test_two_lines_of_a_function_are_two_sites(view: Callable[[Profile], list[str]]) -> None:
    found = view(two_lines())
    assert len(found) == 2, found
    assert sum(bool(re.search(r"fill.*:6\b", site)) for site in found) == 1, found
    assert sum(bool(re.search(r"fill.*:8\b", site)) for site in found) == 1, found


def test_two_lines_of_a_caller_are_two_sites(capsys: pytest.CaptureFixture[str]) -> None:
    """A function of the program's that passes requests on would hide them else."""
    profile = two_lines()
    profile.names |= {
        stack_of(place)[0] - 1: (Frame("get", "/src/two.c", 3), profile.names[stack_of(place)[0] - 1][0])
        for place in range(2)
    }
    show_profile(profile)
    shown = capsys.readouterr().out
    assert "get (two.c:3) ← fill:6 ← main:20" in shown
    assert "get (two.c:3) ← fill:8 ← main:20" in shown


def test_without_lines_a_site_is_a_function() -> None:
    profile = two_lines()
    profile.names = {at: (Frame(frames[0].function),) for at, frames in profile.names.items()}
    assert of_table(profile) == ["fill ← main ← two+0x600000"]


def test_the_page_groups_lines_by_their_function() -> None:
    data = flame_data(two_lines(), Labels(two_lines()))
    functions = {data["names"][line]: data["names"][of] for line, of in data["functions"].items()}
    assert functions["fill (two.c:6)"] == functions["fill (two.c:8)"] == "fill"
    assert 'option value="1">functions<' in render(two_lines())


def test_lines_of_another_build_are_not_compared() -> None:
    """Two lines were added above: line 8 is another place there."""
    same = difference(two_lines(), two_lines()).changes
    assert [round(change.bytes) for change in same] == [0, 0]
    (other,) = difference(two_lines(), two_lines(OTHER_BUILD, first_line=8)).changes
    assert site_text(other.frames).plain == "fill (two.c) ← main ← two+0x600000"
    assert round(other.bytes) == 0


def test_lines_of_one_process_are_compared_without_a_build_id() -> None:
    assert len(difference(two_lines(""), two_lines("")).changes) == 2
    later = two_lines("")
    later.header.pid += 1
    assert len(difference(two_lines(""), later).changes) == 1


# ---- a real program --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filling(tool: Tool, compile_c: Compile) -> Iterator[subprocess.Popen[str]]:
    words, profiled = [compile_c(SOURCE, "-g")], {"LD_PRELOAD": str(tool.library), "HAKMEM_PROFILE": "4096"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment() | profiled
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "filled\n"
        yield child
        child.kill()


def lines_of_fill() -> list[int]:
    text = SOURCE.read_text().splitlines()
    return [1 + number for number, line in enumerate(text) if "line" in line and "malloc" in line]


def test_a_real_program(tool: Tool, filling: subprocess.Popen[str], tmp_path: Path) -> None:
    """By the commands, through all formats that are read again."""
    small, large = lines_of_fill()
    shown = tool("profile", filling.pid, *(o for name in NAMES for o in ("-o", tmp_path / name))).stdout
    folded = (tmp_path / "x.folded").read_text()
    leaks = tool("leaks", filling.pid, "--all").stdout
    read_again = [tool("profile", tmp_path / name).stdout for name in NAMES[:2]]
    for text in (shown, folded, leaks, *read_again):
        for line in (small, large):
            assert f"fill (two_lines.c:{line})" in text, text
    found = tool("profile", tmp_path / NAMES[1], "--against", tmp_path / NAMES[0], "--all").stdout
    assert f"fill (two_lines.c:{small})" in found
    data = json.loads((tmp_path / NAMES[1]).read_text())
    frames = [frame for site in data["sites"] for frame in site["stack"] if frame["function"] == "fill"]
    assert {frame["line"] for frame in frames} == {small, large}


NAMES = ("x.pb.gz", "x.json", "x.folded", "x.html")
