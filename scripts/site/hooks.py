"""How mkdocs gets the pages (pages.py), and what is checked beyond what it checks itself."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pages

# The dialect that pages are written for; mkdocs' own wants blank lines and indents that it does not.
WRITTEN_FOR = MarkdownIt("commonmark").enable("table")
COUNTED = re.compile(r"<(ul|ol|li|table|tr|pre|blockquote|img|h[1-6])\b")
COMMANDS = re.compile(r"<pre>(?=(?:[^\n]*\n){1,8}</code></pre>)")  # longer ones are output, or drawn
LOG = get_plugin_logger("hakmem")
LINKS = "site-links.txt"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = pages.expanded(config.nav or [])
    config.copyright = f"hakmem {pages.version()}, MIT license"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    try:
        site = pages.site(config.nav or [])
    except pages.NoSuchPage as fault:
        raise PluginError(str(fault)) from None
    for path, content in site.items():
        if isinstance(content, Path):
            files.append(File.generated(config, path, abs_src_path=str(content)))
        else:
            files.append(File.generated(config, path, content=content))
    list_links(pages.external_links(site), Path(config.site_dir).parent / LINKS)
    return files


def list_links(links: list[tuple[str, str]], to: Path) -> None:
    """They are not fetched: another's server is not a fault of this tree."""
    to.write_text("".join(f"{link}\t{page}\n" for link, page in links))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The start page has no neighbours to list."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    return markdown


def on_page_content(html: str, page: Page, **_: object) -> str:
    """A list or a table that only one of the two dialects sees is none on the site or none in a checkout."""
    path = page.file.src_uri
    if (pages.ROOT / path).exists():
        here = Counter(COUNTED.findall(html))
        there = Counter(COUNTED.findall(WRITTEN_FOR.render(page.markdown or "")))
        if here != there:
            wrong = ", ".join(
                f"<{tag}> {here[tag]} not {there[tag]}" for tag in sorted((here - there) | (there - here))
            )
            LOG.warning(
                f"{path} is laid out otherwise than in a checkout: {wrong}; a blank line before the list?"
            )
    return COMMANDS.sub('<pre class="commands">', html)


def on_post_build(config: MkDocsConfig) -> None:
    """A map of a site without an address is empty, and has the time of day in it."""
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        (Path(config.site_dir) / name).unlink()
