"""The site as `make site` builds it, in a browser, opened as a file: make test-packages."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import browser_of
from real.conftest import program, why_missing
from results import captured

__all__ = ["program", "why_missing"]

# Of each kind one: start, guide, generated, figures in wide tables, a source.
LOOKED_AT = [
    "index.html",
    "docs/guides/C.html",
    "manual/libhakmem.html",
    "docs/performance/campaign.tsv.html",
    "include/hakmem/hakmem.h.html",
]
WIDTHS = [390, 500, 1400]
# A frame of the site's own folder measures each page, at each width, after its scripts have run.
PROBE = """<!doctype html><meta charset="utf-8"><body><script>
const wait = frame => new Promise(loaded => frame.onload = () => setTimeout(loaded, 200));
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px";
  frame.style.height = "900px";
  frame.src = page;
  document.body.append(frame);
  await wait(frame);
  const inside = frame.contentDocument;
  const entries = frame.contentWindow.performance.getEntriesByType("resource");
  const loaded = entries.map(entry => entry.name).filter(name => !name.startsWith("file:"));
  const images = [...inside.images].filter(image => image.complete && !image.naturalWidth);
  const over = inside.documentElement.scrollWidth - frame.contentWindow.innerWidth;
  const isPlain = box => getComputedStyle(box).backgroundImage == "none";
  const isShort = box => box.textContent.split("\\n").length <= 9;
  const boxes = [...inside.querySelectorAll("pre > code")];
  const scrolled = boxes.filter(box => box.scrollWidth > box.clientWidth);
  const cut = scrolled.filter(box => isShort(box) || isPlain(box)).map(box => box.textContent);
  const line = {page, cut, width, broken: images.map(image => image.src), loaded, title: inside.title, over};
  frame.remove();
  return line;
}
(async () => {
  const seen = [];
  for (const page of PAGES) for (const width of WIDTHS) seen.push(await look(page, width));
  document.body.innerHTML = "<pre id=seen></pre>";
  document.getElementById("seen").textContent = JSON.stringify(seen);
})();
</script>"""

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("PACKAGES") != "all",
        reason="needs a Python package index and a browser: make test-packages",
    ),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def site(root: Path) -> Path:
    step = captured(["make", "-s", "site"], cwd=root)
    assert step.returncode == 0, step.stdout + step.stderr
    return root / "build" / "site"


@pytest.fixture(scope="module")
def dump(program: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The document of an address when its scripts have run."""
    browser, profile = browser_of(program), tmp_path_factory.mktemp("profile")

    def dumped(address: str) -> str:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        words += ["--allow-file-access-from-files", "--virtual-time-budget=20000", "--dump-dom", address]
        return captured(words, timeout=120, check=True).stdout

    return dumped


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_pages_give_the_same_site(root: Path, site: Path, tmp_path: Path) -> None:
    words = [root / "scripts" / "make-site", root / "build" / "site-venv", tmp_path / "site"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1000000000", "TZ": "Asia/Tokyo"}
    subprocess.run([str(word) for word in words], check=True, capture_output=True, env=environment)
    assert len(files(site)) > 100
    assert files(tmp_path / "site") == files(site)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loading = re.compile(
        r"<(?:script|img|iframe|source)[^>]* src=\"?(?:https?:)?//|<link[^>]* href=\"?(?:https?:)?//"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    assert not [page for page in pages if loading.search(page.read_text())]
    assert not [
        sheet for sheet in site.rglob("*.css") if re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text())
    ]


def test_pages_fit_their_window_and_load_their_pictures(site: Path, dump: Callable[[str], str]) -> None:
    probe = site / "probe.html"
    probe.write_text(PROBE.replace("PAGES", json.dumps(LOOKED_AT)).replace("WIDTHS", json.dumps(WIDTHS)))
    try:
        found = re.search(r'<pre id="seen">(.*?)</pre>', dump(probe.as_uri()), re.DOTALL)
    finally:
        probe.unlink()
    assert found is not None
    seen = json.loads(found[1].replace("&amp;", "&"))
    assert len(seen) == len(LOOKED_AT) * len(WIDTHS)
    assert all("hakmem" in line["title"] for line in seen)
    assert not [line for line in seen if line["over"] > 0 or line["broken"] or line["loaded"]]
    assert not [line for line in seen if line["width"] == WIDTHS[0] and line["cut"]]


@pytest.mark.parametrize(
    ("query", "page"), [("hak_malloc_site", "manual/libhakmem.html"), ("decay", "docs/OPTIONS.html")]
)
def test_a_page_that_was_opened_as_a_file_is_searched(
    site: Path, dump: Callable[[str], str], query: str, page: str
) -> None:
    results = re.findall(
        r'class="md-search-result__link"[^>]*href="([^"]*)"|href="([^"]*)"[^>]*class="md-search-result__link"',
        dump(f"{(site / 'index.html').as_uri()}?q={quote(query)}"),
    )
    assert any(page in link for pair in results for link in pair), results[:5]
