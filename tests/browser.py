"""Pages in a real browser: what a page is there, told by the browser itself.

@pytest.fixture(scope="module")
def seen(page, program, tmp_path_factory):
    return seen_in_browser(page.read_text(), LOOK, browser_of(program), tmp_path_factory.mktemp("browser"))

`LOOK` is a script that runs in the page, with everything it wants to tell in `seen`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

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


def browser_of(program: Callable[[str], Path]) -> str:
    """A Chromium: any that is there, else Debian's, else the reason why there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None) or str(program("chromium"))


def seen_in_browser(page: str, look: str, browser: str, folder: Path) -> dict[str, object]:
    """What `look` put into `seen`, and faults, requests, and whether it fits the window."""
    probed = folder / "probed.html"
    script = FRAME % look
    probed.write_text(page.replace("<head>", "<head>" + PROBE).replace("</body>", script + "</body>"))
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    step = subprocess.run(
        [*words, "--window-size=1000,900", "--virtual-time-budget=2000", "--dump-dom", probed.as_uri()],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    found = re.search(r'<pre id="seen">(.*?)</pre>', step.stdout, re.DOTALL)
    assert found is not None, (step.stdout or step.stderr)[-2000:]
    data: dict[str, object] = json.loads(found[1])
    return data
