"""The site (`make site`) without building it: each page has one place, links lead somewhere, and the
generated reference has all functions and commands.  tests/packages/test_site_all.py builds it."""

import html
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from results import captured

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "scripts" / "site"
# What crates.io shows; on the site docs/guides/RUST.md says it.
SHOWN_ELSEWHERE = {"rust/hakmem/README.md", "rust/hakmem-sys/README.md"}


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    pytest.importorskip("click", reason="without a package index the tool is left out (make-tool)")
    sys.path.insert(0, str(SITE))
    import pages as module

    return module


@pytest.fixture(scope="module")
def nav(pages: ModuleType) -> list[object]:
    yaml = pytest.importorskip("yaml")
    settings = yaml.load((SITE / "mkdocs.yml").read_text(), yaml.BaseLoader)
    return list(pages.expanded(settings["nav"]))


@pytest.fixture(scope="module")
def site(pages: ModuleType, nav: list[object]) -> dict[str, str | Path]:
    return dict(pages.site(nav))


def words(text: str) -> str:
    return " ".join(text.split())


def as_read(markdown: str) -> str:
    """The text that a reader sees; of a page that is named in it, without its folder."""
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    return words(html.unescape(re.sub(r"<[^>]+>", "", parser.render(markdown))))


def plain(text: str) -> str:
    return words(re.sub(r"`|\bdocs/", "", text))


def test_each_page_has_one_place(pages: ModuleType, nav: list[object]) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    step = captured(listed, cwd=ROOT, check=True)
    written = {name for name in step.stdout.split() if (ROOT / name).exists()} - SHOWN_ELSEWHERE
    placed = [path for path, _ in pages.entries(nav)]
    assert len(written) > 50
    assert sorted(placed) == sorted(written | set(pages.manual_pages()) | {"LICENSE.md"})


def test_the_first_command_needs_no_root(site: dict[str, str | Path]) -> None:
    first_screen = str(site["README.md"]).partition("![")[0]
    assert "```\nmake " in first_screen
    assert "sudo" not in first_screen


def test_links_lead_to_pages_and_pictures_of_the_site(pages: ModuleType, site: dict[str, str | Path]) -> None:
    for page, text in site.items():
        if isinstance(text, Path):
            assert text.is_file()
        else:
            links = {link for link in pages.links_of(page, text) if not pages.is_external(link)}
            assert links <= set(site), page


def test_a_linked_source_is_a_page_with_its_text(site: dict[str, str | Path]) -> None:
    for path in ("include/hakmem/hakmem.h", "packaging/systemd/hakmem.conf"):
        assert (ROOT / path).read_text() in str(site[f"{path}.md"])
    assert "Dockerfile.alpine.md" in str(site["packaging/docker.md"])


def test_figures_are_a_page_with_their_tables(site: dict[str, str | Path]) -> None:
    lines = (ROOT / "docs/performance/campaign.tsv").read_text().splitlines()
    page = str(site["docs/performance/campaign.tsv.md"]).replace("\\_", "_")
    assert all(line.removeprefix("# ").replace("\t", " | ") in page for line in lines)
    assert page.count("\n|---|") == sum(not line for line in lines)


@pytest.mark.parametrize("link", ["../src/missing.c", "../rust/hakmem/README.md", "../../elsewhere"])
def test_a_link_that_leads_nowhere_is_refused(pages: ModuleType, link: str) -> None:
    with pytest.raises(pages.NoSuchPage, match=re.escape(link)):
        pages.with_links_led("docs/SAFETY.md", f"See [it]({link}).", {"docs/SAFETY.md": "Safety"})


def test_links_say_titles_and_keep_anchors(pages: ModuleType) -> None:
    titles = {"docs/SAFETY.md": "Mistakes", "docs/decisions/README.md": "All"}
    text = "[SAFETY.md](docs/SAFETY.md#a) [docs/decisions/](docs/decisions/) [x](https://a.b/c.md)\n"
    code = "```\n[SAFETY.md](docs/SAFETY.md)\n```\n"
    led = "[Mistakes](docs/SAFETY.md#a) [decisions](docs/decisions/README.md) [x](https://a.b/c.md)\n"
    assert pages.with_links_led("README.md", text + code, titles) == led + code


def test_the_reference_has_each_function_as_the_header_describes_it(pages: ModuleType) -> None:
    header = pages.manual.HEADER.read_text()
    functions = re.findall(r"^HAK_EXPORT [^;]*?\b(\w+)\(", header, re.MULTILINE)
    page = pages.manual_pages()["manual/libhakmem.md"]
    assert len(functions) > 20
    for function in functions:
        assert page.count(f"{{ #{function} }}") + page.count(f'<a id="{function}">') == 1, function
    read = as_read(page)
    for comment in re.findall(r"/\*((?:(?!\*/).)*)\*/\nHAK_EXPORT", header, re.DOTALL):
        paragraph = re.sub(r"\n \*", "\n", comment).partition("\n\n")[0]
        said = plain(re.sub(r"\*(\w+)\*", r"\1", paragraph))
        assert said in read, said


def test_the_reference_has_each_command_with_its_options(pages: ModuleType) -> None:
    import click
    from hakmem.cli import COMMANDS, main

    assert {name for name in pages.manual_pages() if "hakmem-" in name} == {
        f"manual/hakmem-{c}.md" for c in COMMANDS
    }
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        read = as_read(pages.manual_pages()[f"manual/hakmem-{name}.md"])
        for option in (p for p in command.params if isinstance(p, click.Option) and not p.hidden):
            assert all(spelling in read for spelling in option.opts), (name, option.opts)
            assert plain(option.help or "") in read, (name, option.opts)
