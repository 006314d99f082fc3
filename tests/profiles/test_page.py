"""The page of a profile: in a real browser, without a request, with zoom, search, inversion and sorting."""

import json
import re

import pytest
from browser import Elements, browser_of, seen_in_browser
from hakmem.profile.model import Frame, Profile
from hakmem.views.profile_page import render
from profiles.conftest import LOADS, SITES, named_profile
from results import Find


def test_page_loads_nothing(named: Profile) -> None:
    text = render(named)
    assert Elements(text).loaded == []
    assert not re.search(r"https?://|@import|url\(", text)


def test_page_adds_up(named: Profile) -> None:
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', render(named), re.DOTALL)
    assert data is not None
    stacks = json.loads(data[1])["stacks"]
    total = sum(load.total_bytes for load in LOADS) + 30_000 * 64
    assert sum(of_bytes for _, of_bytes, _ in stacks) == pytest.approx(total, abs=9)


def test_names_are_only_text(named: Profile) -> None:
    """A program's symbols may hold anything."""
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    named.names = {address: (Frame(evil, evil, 1),) for address in named.names}
    named.header.command = [evil]
    text = render(named)
    assert "<script>alert" not in text
    assert "<img" not in text


def test_nothing_at_all() -> None:
    assert "flame" in render(Profile())


# ---- in a browser -------------------------------------------------------------------------------------

LOOK = """
const shown = () => [...document.querySelectorAll("#boxes .frame")].map(box => box.textContent);
const drawn = () => [...document.querySelectorAll("#boxes .frame")];
const box = name => drawn().find(one => one.textContent.split(" ")[0] === name);
const wide = name => box(name) ? Math.round(box(name).getBoundingClientRect().width) : 0;
const type = (id, value, event) => {
  const element = document.getElementById(id);
  element.value = value;
  element.dispatchEvent(new Event(event));
};
const rows = () => [...document.querySelectorAll("#sites tbody tr")];
const column = number => rows().map(row => row.cells[number].textContent);
const click = number => document.querySelectorAll("#sites th")[number].click();
seen.light = colour();
document.getElementById("theme").click();
seen.dark = colour();
seen.all = shown();
seen.before = [wide("serve"), wide("all"), document.getElementById("boxes").clientWidth];
seen.rows = [box("all").style.top, box("serve").style.top];
box("serve").dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 50, clientY: 50}));
seen.tip = document.querySelector(".tip").hidden ? "" : document.querySelector(".tip").textContent;
box("serve").click();
seen.zoomed = [wide("serve"), shown().map(name => name.split(" ")[0])];
document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
seen.back = wide("serve");
type("search", "SERVE", "input");
seen.found = [...document.querySelectorAll("#boxes .found")].map(one => one.textContent);
seen.matched = document.getElementById("matched").textContent;
type("search", "", "input");
document.getElementById("invert").click();
const mains = shown().filter(name => name === "main (main.cc:99)");
seen.inverted = [mains.length, box("serve").style.top, wide("serve")];
document.getElementById("invert").click();
type("group", "1", "change");
seen.functions = [shown(), wide("serve")];
type("group", "", "change");
type("figure", "1", "change");
seen.blocks = wide("parse") / wide("all");
seen.sorted = column(5);
click(2);
seen.byBlocks = column(2);
click(2);
seen.byFewest = column(2);
click(5);
seen.byName = column(5);
"""


@pytest.fixture(scope="module")
def seen(program: Find, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the page is in a browser, told by the browser."""
    folder = tmp_path_factory.mktemp("browser")
    return seen_in_browser(render(named_profile()), LOOK, browser_of(program), folder)


def test_page_runs_without_faults_and_requests(seen: dict[str, object]) -> None:
    assert seen["faults"] == []
    assert seen["requests"] == []
    assert seen["fits"]


def test_boxes_are_as_wide_as_their_bytes(seen: dict[str, object]) -> None:
    serve, whole, page = seen["before"]  # type: ignore[misc]
    assert whole == pytest.approx(page, abs=1)
    assert 0.3 < serve / whole < 0.5
    assert all(name in str(seen["all"]) for name in SITES)
    assert seen["rows"] == ["0px", "60px"], "under libc's frame and main"


def test_click_zooms_and_escape_goes_back(seen: dict[str, object]) -> None:
    width, names = seen["zoomed"]  # type: ignore[misc]
    assert width == pytest.approx(seen["before"][2], abs=1)  # type: ignore[index]
    assert "parse" not in names
    assert "main" in names
    assert seen["back"] == seen["before"][0]  # type: ignore[index]


def test_search_marks_what_matches(seen: dict[str, object]) -> None:
    assert seen["found"] == ["serve (serve.cc:11)"]
    assert re.fullmatch(r"20\.\d MiB, 39\.\d %|\d+\.\d MiB, \d+\.\d %", str(seen["matched"]))


def test_inverted_the_allocating_function_is_on_top(seen: dict[str, object]) -> None:
    assert seen["inverted"] == [3, "20px", seen["before"][0]]  # type: ignore[index]


def test_functions_group_their_lines(seen: dict[str, object]) -> None:
    names, width = seen["functions"]  # type: ignore[misc]
    assert set(names) >= {"serve", "parse", "main"}
    assert width == seen["before"][0]  # type: ignore[index]


def test_blocks_instead_of_bytes(seen: dict[str, object]) -> None:
    assert float(str(seen["blocks"])) > 0.5


def first_words(names: object) -> list[str]:
    assert isinstance(names, list)
    return [name.split(" ")[0] for name in names]


def test_columns_sort(seen: dict[str, object]) -> None:
    assert first_words(seen["sorted"]) == ["serve", "cache_fill", "parse"]
    assert seen["byFewest"] == seen["byBlocks"][::-1]  # type: ignore[index]
    assert seen["byFewest"][0] == "20"  # type: ignore[index]
    assert first_words(seen["byName"]) == ["cache_fill", "parse", "serve"]


def test_pointer_shows_values_and_button_switches_colours(seen: dict[str, object]) -> None:
    assert re.fullmatch(r"serve \(serve.cc:11\)[\d.]+ MiB, [\d.]+ %", str(seen["tip"]))
    assert seen["light"] != seen["dark"]
