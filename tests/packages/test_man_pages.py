"""The manual pages say what the tables say: every command with its options, every function, every option of
the library; and groff has nothing to complain of."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import doc_options
import pytest
from results import captured


@pytest.fixture(scope="module")
def pages(load_script: Callable[[str], ModuleType]) -> dict[str, str]:
    pytest.importorskip("hakmem.cli", reason="without a package index the tool is left out (make-tool)")
    return load_script("man-pages").pages(with_tool=True)


def plain_text(page: str) -> str:
    """Without the marks that are in the way of words."""
    text = re.sub(r"\\f[BR]|\\&|\\\(ga", "", page)
    for mark, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ti", "~"), (r"\(ha", "^"), (r"\e", "\\")):
        text = text.replace(mark, character)
    return " ".join(text.split())


def test_each_command_has_its_page_with_each_option(pages: dict[str, str]) -> None:
    import click
    from hakmem.cli import COMMANDS, main

    top = plain_text(pages["man1/hakmem.1"])
    assert {name for name in pages if name.startswith("man1/hakmem-")} == {
        f"man1/hakmem-{c}.1" for c in COMMANDS
    }
    for name, sentence in COMMANDS.items():
        assert sentence in top
        command = main.get_command(click.Context(main), name)
        assert command is not None
        page = plain_text(pages[f"man1/hakmem-{name}.1"])
        assert f"hakmem-{name} - " in page
        for option in (p for p in command.params if isinstance(p, click.Option) and not p.hidden):
            assert all(spelling in page for spelling in option.opts), (name, option.opts)
            assert " ".join((option.help or "").replace("`", "").split()) in page, (name, option.opts)
        for paragraph in re.split(r"\n\s*\n", (command.help or "").replace("\b", "")):
            words = re.sub(r"^[A-Z][a-z ]+:\s", "", " ".join(paragraph.replace("`", "").split()))
            assert words in page, (name, words)


def test_each_function_is_described_under_its_name(pages: dict[str, str], root: Path) -> None:
    header = (root / "include/hakmem/hakmem.h").read_text()
    functions = re.findall(r"^HAK_EXPORT [^;]*?\b(\w+)\(", header, re.MULTILINE)
    assert len(functions) > 20
    page = plain_text(pages["man3/libhakmem.3"])
    for function in functions:
        assert page.count(f"{function}(") >= 2, "in the synopsis and in the description"
        assert pages[f"man3/{function}.3"] == ".so man3/libhakmem.3\n"
    for comment in re.findall(r"/\*((?:(?!\*/).)*)\*/\nHAK_EXPORT", header, re.DOTALL):
        sentence = re.sub(r"\s*\n \* ?", " ", comment).strip().replace("`", "").partition(". ")[0]
        assert " ".join(sentence.split()) in page


def test_each_option_of_the_library_is_described(pages: dict[str, str]) -> None:
    page = plain_text(pages["man7/hakmem-options.7"])
    options = doc_options.options()
    assert options
    for option in options:
        assert f"{option.name} " in page
        assert " ".join(option.sentence.replace("`", "").split()) in page


def test_groff_finds_nothing_wrong(pages: dict[str, str]) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    text = "".join(page for page in pages.values() if not page.startswith(".so"))
    words = ["groff", "-k", "-man", "-ww", "-z", "-Tutf8"]
    step = captured(words, input=text)
    assert (step.returncode, step.stderr) == (0, "")


def test_those_of_the_library_need_no_more_than_python(root: Path, tmp_path: Path) -> None:
    """`make install` runs where the tool's libraries are not."""
    words = ["/usr/bin/python3", "-I", "-S", root / "scripts" / "man-pages", "--library", tmp_path]
    subprocess.run([str(word) for word in words], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"man3", "man7"}
