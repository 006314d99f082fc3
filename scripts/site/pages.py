"""The pages of the site: files of the tree under their own paths, and what is generated beside them.

    README.md, docs/…, …        as they are; links to folders and to sources are led to the pages of these
    manual/….md                 the C interface and the commands, by manual.py
    LICENSE.md                  the license
    packaging/…, include/….md   each file that a page links and that is none itself: its text

Nothing here needs mkdocs: tests/shape/test_site.py looks at all of it."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]

import manual  # noqa: E402
import markdown_form  # noqa: E402

PICTURES = {".svg", ".png"}
LANGUAGES = {
    ".h": "c",
    ".hpp": "cpp",
    ".rs": "rust",
    ".json": "json",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".conf": "ini",
}
Titles = dict[str, str]  # path of a page → what the navigation calls it
TEXT_COLUMNS = 4  # of a table of texts; a wider one has figures
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)((?:#[^)\s]*)?)\)")


class NoSuchPage(Exception):
    """A link or a name in the navigation leads nowhere."""


# ---- generated ------------------------------------------------------------------------------------------


version = manual.version


@functools.cache
def manual_pages() -> dict[str, str]:
    """manual/hakmem-why.md → its text; the options have a page in docs/."""
    pages = manual.library_page(markdown_form) | manual.tool_pages(markdown_form)
    return {f"manual/{PurePosixPath(path).stem}.md": text for path, text in pages.items()}


def license_page() -> str:
    title, _, text = (ROOT / "LICENSE").read_text().partition("\n")
    return f"# {title}\n{text}"


def source_page(path: str) -> str:
    """A file that is not a page, or a folder's list of them."""
    file = ROOT / path
    if file.is_dir():
        names = sorted(entry.name for entry in file.iterdir() if entry.is_file())
        return f"# {path}\n\n" + "".join(f"- [{name}]({file.name}/{name}.md)\n" for name in names)
    if file.suffix == ".tsv":
        return f"# {path}\n\n{tables_page(file.read_text())}"
    language = LANGUAGES.get(file.suffix, "docker" if file.name.startswith("Dockerfile") else "")
    fence = "`````"
    return f"# {path}\n\n{fence}{language}\n{file.read_text()}{fence}\n"


def tables_page(text: str) -> str:
    """Tables from cells between tabs: an empty line ends a table, `#` begins a note."""
    parts = []
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        if block.startswith("# "):
            parts.append("\n\n".join(line.removeprefix("# ") for line in lines))
            continue
        plain = [line.replace("|", "\\|").replace("_", "\\_") for line in lines]
        rows = ["| " + line.replace("\t", " | ") + " |" for line in plain]
        columns = lines[0].count("\t") + 1
        rows.insert(1, "|---" + ("|---:" if columns > TEXT_COLUMNS else "|---") * (columns - 1) + "|")
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


# ---- links ----------------------------------------------------------------------------------------------


FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)


def outside_of_code(text: str) -> list[str]:
    """The parts outside fenced blocks."""
    return FENCED.split(text)[::2]


def changed_outside_of_code(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if number % 2 else change(part) for number, part in enumerate(FENCED.split(text)))


def target_of(page: str, link: str) -> str:
    """The path in the tree that a page's link leads to."""
    return os.path.normpath(str(PurePosixPath(page).parent / link))


def place_of(page: str, link: str, titles: Titles) -> str:
    """The target of the link on the site."""
    path = target_of(page, link)
    if path in titles or is_external(link):
        return link
    if (ROOT / path / "README.md").exists():
        return os.path.relpath(f"{path}/README.md", PurePosixPath(page).parent)
    if path.endswith(".md"):
        raise NoSuchPage(
            f"{page} links {link}: {path} has no place in the navigation (scripts/site/mkdocs.yml)"
        )
    if path.startswith("..") or not (ROOT / path).exists():
        raise NoSuchPage(f"{page} links {link}: there is no {path}")
    return link if PurePosixPath(path).suffix in PICTURES else f"{link.rstrip('/')}.md"


def with_links_led(page: str, text: str, titles: Titles) -> str:
    """A link's text that is a page's file name becomes its title; a folder's loses the path."""

    def led(found: re.Match[str]) -> str:
        name, link, anchor = found.groups()
        place = place_of(page, link, titles)
        if name.endswith("/"):
            name = PurePosixPath(name).name
        elif name.endswith(".md"):
            name = titles.get(target_of(page, place), name)
        return f"[{name}]({place}{anchor})"

    return changed_outside_of_code(text, lambda part: LINK.sub(led, part))


def is_external(link: str) -> bool:
    return "://" in link or link.startswith("mailto:")


def links_of(page: str, text: str) -> set[str]:
    """Addresses, and paths in the tree."""
    found = [match[2] for part in outside_of_code(text) for match in LINK.finditer(part)]
    return {link if is_external(link) else target_of(page, link) for link in found}


# ---- the whole ------------------------------------------------------------------------------------------


def expanded(nav: list[Any]) -> list[Any]:
    """The navigation, with all files in the place of a name with a star."""
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            (title, below), *_ = entry.items()
            entries.append({title: expanded(below) if isinstance(below, list) else below})
        elif "*" in entry:
            entries.extend({title_of(path): path} for path in fitting(entry))
        else:
            entries.append(entry)
    return entries


def fitting(pattern: str) -> list[str]:
    paths = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)}
    generated = {path for path in manual_pages() if PurePosixPath(path).match(pattern)}
    return sorted(paths | generated)


def title_of(path: str) -> str:
    """0012-startup.md: 0012 startup; hakmem-why.md: why."""
    return PurePosixPath(path).stem.removeprefix("hakmem-").replace("-", " ")


def entries(nav: list[Any]) -> Iterator[tuple[str, str]]:
    """Path and title of the pages of an expanded navigation, in order; a page without a title has its own."""
    for entry in nav:
        title, below = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        if isinstance(below, list):
            yield from entries(below)
        else:
            yield below, title or title_of(below)


def text_of(page: str) -> str:
    if page == "LICENSE.md":
        return license_page()
    if page in manual_pages():
        return manual_pages()[page]
    if not (ROOT / page).exists():
        raise NoSuchPage(f"the navigation (scripts/site/mkdocs.yml) names {page}, which does not exist")
    return (ROOT / page).read_text()


# A search shows options before the pages on design, and files of the tree last.
RANK_OF_OPTIONS, RANK_OF_FILES = 3, 0.1


def ranked(text: str, rank: float) -> str:
    return f"---\nsearch: {{boost: {rank}}}\n---\n{text}"


def site(nav: list[Any]) -> dict[str, str | Path]:
    """All files of the site: a page's text, or where a picture is."""
    titles = dict(entries(nav))
    found: dict[str, str | Path] = {}
    waiting = list(titles)
    for page in waiting:  # which gets longer meanwhile
        if page in found:
            continue
        if PurePosixPath(page).suffix in PICTURES:
            found[page] = ROOT / page
            continue
        if page in titles:
            text = with_links_led(page, text_of(page), titles)
            found[page] = ranked(text, RANK_OF_OPTIONS) if page == "docs/OPTIONS.md" else text
        else:
            text = source_page(page[: -len(".md")])
            found[page] = ranked(text, RANK_OF_FILES)
        waiting.extend(sorted(link for link in links_of(page, text) if not is_external(link)))
    return found


def external_links(files: dict[str, str | Path]) -> list[tuple[str, str]]:
    """Each with the page that has it."""
    texts = ((page, text) for page, text in files.items() if isinstance(text, str))
    return sorted((link, page) for page, text in texts for link in links_of(page, text) if is_external(link))
