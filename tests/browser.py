"""Pages in a real browser: what a page is there, told by the browser itself.

@pytest.fixture(scope="module")
def seen(page, program, tmp_path_factory):
    return seen_in_browser(page.read_text(), LOOK, browser_of(program), tmp_path_factory.mktemp("browser"))

`LOOK` is a script that runs in the page, with everything it wants to tell in `seen`.
"""

import json
import re
import shutil
import subprocess
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from results import Find, captured

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
LOADING = ("src", "href", "srcset", "action", "data")
TIMEOUT_S = 120
# Before the page's own scripts.
PROBE = """
<script>
window.faults = [];
window.addEventListener("error", event => window.faults.push(event.message));
</script>
"""
# Written into the document by the browser itself, and found in what --dump-dom prints.
FRAME = """
<script>
{
const colour = () => getComputedStyle(document.body).backgroundColor;
const seen = {};
%s
seen.faults = window.faults;
seen.requests = performance.getEntriesByType("resource").map(entry => entry.name);
seen.fits = document.documentElement.scrollWidth <= window.innerWidth;
document.body.innerHTML = "<pre id=seen></pre>";
document.getElementById("seen").textContent = JSON.stringify(seen);
}
</script>
"""


# The charts of a page, the first with a pointer on it.
LOOK_AT_CHARTS = """
const svg = document.querySelector("svg[data-chart=memory]"), box = svg.getBoundingClientRect();
const middle = {clientX: box.left + box.width * 0.6, clientY: box.top + 20};
svg.dispatchEvent(new PointerEvent("pointermove", middle));
const tip = document.querySelector("#memory .tip");
seen.before = colour();
document.getElementById("theme").click();
seen.after = colour();
seen.tip = tip.hidden ? "" : tip.textContent;
seen.shown = [...document.querySelectorAll("svg[data-chart]")].filter(one => one.clientHeight > 100).length;
seen.areas = document.querySelectorAll("#memory .area").length;
"""


class Elements(HTMLParser):
    """The elements of a page that load something, and all names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in LOADING and value and not value.startswith("data:"):
                self.loaded.append(f"{tag} {name}={value}")
            if name == "id" and value:
                self.ids.append(value)


def browser_of(program: Find) -> str:
    """A Chromium: the first of those that are there, else Debian's, else the reason why there is none."""
    wrong = ""
    for browser in filter(None, map(shutil.which, BROWSERS)):
        said = why_no_browser(browser)
        if not said:
            return browser
        wrong = wrong or f"{browser} shows no page: {said}"
    if wrong:
        pytest.skip(wrong)
    return str(program("chromium"))


@cache
def why_no_browser(browser: str) -> str:
    """Ubuntu's asks for a snap; a snap sees no page that lies in /tmp."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text("<script>document.write(6 * 7)</script>")
        step = run_browser(browser, Path(folder, "profile"), "--dump-dom", page.as_uri())
    is_shown = step.returncode == 0 and "42</body>" in step.stdout
    return "" if is_shown else " ".join((step.stderr or step.stdout).split())[-200:] or "it says nothing"


def run_browser(browser: str, profile: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *words]
    return captured(command, timeout=TIMEOUT_S)


def seen_in_browser(page: str, look: str, browser: str, folder: Path) -> dict[str, object]:
    """What `look` put into `seen`, and faults, requests, and whether it fits the window."""
    probed = folder / "probed.html"
    script = FRAME % look
    probed.write_text(page.replace("<head>", "<head>" + PROBE).replace("</body>", script + "</body>"))
    size = ["--window-size=1000,900", "--virtual-time-budget=2000"]
    step = run_browser(browser, folder / "profile", *size, "--dump-dom", probed.as_uri())
    found = re.search(r'<pre id="seen">(.*?)</pre>', step.stdout, re.DOTALL)
    assert found is not None, (step.stdout or step.stderr)[-2000:]
    data: dict[str, object] = json.loads(found[1])
    return data
