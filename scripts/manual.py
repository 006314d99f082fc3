"""The manual's text, in whatever form: the command line, the C interface and the options, from the sources
that define them.  scripts/man-pages writes it as manual pages (roff.py), the site has it as Markdown
(site/markdown_form.py).

  hakmem(1), hakmem-COMMAND(1)   from the tables of the command line (python/hakmem/cli.py, commands/)
  libhakmem(3)                   from include/hakmem/hakmem.h
  hakmem-options(7)              from src/config/options.def

Nothing of it is written by hand: the pages hold only what those sources say."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import doc_options

if TYPE_CHECKING:
    import click

SCRIPTS = Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
HEADER = ROOT / "include" / "hakmem" / "hakmem.h"
TOOL = ROOT / "python"
ABOUT_LIBRARY = "general-purpose memory allocator, a drop-in malloc"
ABOUT_TOOL = "show from outside where a program's memory is, and why"

Pages = dict[str, str]  # man3/libhakmem.3 → its text


class Form(Protocol):
    """How parts of a page are written: each marks up plain text, in which `this` is emphasised."""

    def heading(self, page: str, number: int, version: str) -> str: ...
    def name(self, what: str, sentence: str) -> str: ...
    def section(self, title: str, body: str) -> str: ...
    def subsection(self, title: str, body: str) -> str: ...
    def usage(self, command: str, arguments: str) -> str: ...
    def declarations(self, include: str, functions: list[str]) -> str: ...
    def described(self, declared: list[str], text: str) -> str: ...
    def tagged(self, term: str, text: str) -> str: ...
    def filled(self, text: str) -> str: ...
    def literal(self, text: str) -> str: ...
    def prose(self, text: str) -> str: ...
    def see_also(self, *pages: tuple[str, int]) -> str: ...


class Paragraph(NamedTuple):
    text: str  # up to its first point
    points: list[str]
    is_literal: bool = False  # stays as it is, line by line


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The paragraphs of running text, with lists (`- `) and indented lines, which are literal."""
    for paragraph in re.split(r"\n[ \t]*\n", text.strip("\n")):
        if all(line.startswith("  ") for line in paragraph.splitlines()):
            yield Paragraph(paragraph, [], is_literal=True)
        else:
            first, *points = re.split(r"^ *- ", paragraph, flags=re.MULTILINE)
            yield Paragraph(first, points)


def version() -> str:
    return ".".join(re.findall(r"#define HAKMEM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER.read_text()))


# ---- libhakmem(3) --------------------------------------------------------------------------------------


@dataclass
class Described:
    """A comment of the header file, and the declarations that it describes; it may have none."""

    text: str
    declarations: list[str]


def uncommented(comment: str) -> str:
    """The text between /* and */, without the column of stars."""
    lines = comment.removeprefix("/*").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^ ?\* ?", "", line).rstrip() for line in lines).strip("\n ")


def head_of(header: str) -> str:
    """The comment that the file begins with: paragraphs, without licence and file name."""
    text = uncommented(header[: header.index("*/") + 2])
    text = text.partition("\n\n")[2].partition(": ")[2]
    return text[0].upper() + text[1:]


PIECES = re.compile(
    r"/\*.*?\*/|^(?:HAK_EXPORT|typedef) [^;{]+;|^struct \w+ \{\n.*?^\};", re.DOTALL | re.MULTILINE
)


def groups_of(header: str) -> list[tuple[str, list[Described]]]:
    """The declarations under the titles that divide the file; a title may have a text of its own."""
    groups: list[tuple[str, list[Described]]] = []
    for match in PIECES.finditer(header, header.index('extern "C"')):
        piece = match[0]
        if title := re.match(r"/\* -+ (.*?) -+(?: \*/|\n)", piece):
            groups.append((title[1], []))
            piece = f"/*{piece[title.end() :]}" if piece != title[0] else ""
        if piece.startswith("/*"):
            groups[-1][1].append(Described(uncommented(piece), []))
        elif piece:
            groups[-1][1][-1].declarations.append(as_declared(piece))
    return groups


def as_declared(piece: str) -> str:
    """A struct keeps its lines, all else is one line."""
    return piece if piece.startswith("struct") else " ".join(piece.removeprefix("HAK_EXPORT ").split())


def headline(declaration: str) -> str:
    """One line: of a struct without its fields."""
    first, brace, _ = declaration.partition(" {")
    return f"{first};" if brace else declaration


def declared_name(declaration: str) -> str:
    """The name of a function or a type: the word before the parameters, or the last word."""
    found = re.search(r"(\w+)(?:\(|\)\(|;)", headline(declaration))
    assert found, declaration
    return found[1]


def declarations() -> list[str]:
    groups = groups_of(HEADER.read_text())
    return [declaration for _, entries in groups for entry in entries for declaration in entry.declarations]


def exported_functions() -> list[str]:
    return [declared_name(each) for each in declarations() if not re.match("typedef|struct .* {", each)]


def library_page(form: Form) -> Pages:
    header = HEADER.read_text()
    described = ""
    for title, entries in groups_of(header):
        body = "".join(
            form.described(entry.declarations, entry.text) if entry.declarations else form.prose(entry.text)
            for entry in entries
        )
        described += form.subsection(title[0].upper() + title[1:], body)
    page = "".join(
        (
            form.heading("libhakmem", 3, version()),
            form.name(", ".join(["libhakmem", *exported_functions()]), ABOUT_LIBRARY),
            form.section(
                "synopsis",
                form.declarations("<hakmem/hakmem.h>", [headline(each) for each in declarations()]),
            ),
            form.section("description", form.prose(head_of(header)) + described),
            form.section("linking", form.literal(LINKING_LINES) + form.filled(LINKING)),
            form.section(
                "environment", form.filled("Options are variables HAKMEM_*; see hakmem-options(7).")
            ),
            form.see_also(("hakmem", 1), ("hakmem-options", 7), ("malloc", 3), ("ld.so", 8)),
        )
    )
    return {LIBRARY_PAGE: page}


LIBRARY_PAGE = "man3/libhakmem.3"
LINKING_LINES = "cc program.c -lhakmem\nLD_PRELOAD=libhakmem.so.0 program"
LINKING = (
    "A program that is linked with the library, or started with it preloaded, has its malloc, free, "
    "operator new and their relatives. For C++ there is <hakmem/hakmem.hpp>: an allocator for "
    "containers and a std::pmr::memory_resource. pkg-config and CMake's find_package know it."
)


# ---- hakmem-options(7) ---------------------------------------------------------------------------------


def options_page(form: Form) -> Pages:
    about = (ROOT / "docs" / "OPTIONS.md").read_text().split("\n\n")[1]
    parts = [
        form.heading("hakmem-options", 7, version()),
        form.name("hakmem-options", "environment variables of the hakmem allocator"),
        form.section("description", form.prose(about.replace("`", ""))),
    ]
    for title, options in doc_options.groups():
        body = "".join(form.tagged(o.name, f"{o.sentence}. {values_of(o)}") for o in options)
        parts.append(form.section(title, body))
    parts.append(form.see_also(("hakmem", 1), ("libhakmem", 3), ("environ", 7)))
    return {"man7/hakmem-options.7": "".join(parts)}


def values_of(option: doc_options.Option) -> str:
    """The two cells of OPTIONS.md between name and sentence."""
    _, default, values, _ = option.row()
    return f"Default: {default.strip(chr(34))}; {values}."


# ---- hakmem(1) -----------------------------------------------------------------------------------------


def help_parts(form: Form, text: str) -> tuple[str, dict[str, str]]:
    """The description, and what a title (`Examples:`) heads in a paragraph that click keeps as it is."""
    described, titled = "", {}
    for paragraph in re.split(r"\n[ \t]*\n", text.partition("\f")[0].strip()):
        kept = paragraph.lstrip().startswith("\b")
        lines = textwrap.dedent(paragraph.replace("\b", "")).strip("\n")
        title = re.match(r"([A-Z][a-z ]+):[ \n]", lines + "\n")
        if kept and title:
            titled[title[1]] = lines[title.end() :]
        else:
            described += form.literal(lines) if kept else form.filled(lines)
    return described, titled


def titled_sections(form: Form, titled: dict[str, str]) -> str:
    """Commands and tables stay line by line; sentences are filled."""
    return "".join(
        form.section(title, form.literal(text) if text.startswith("  ") else form.filled(text))
        for title, text in titled.items()
    )


def option_entries(form: Form, command: click.Command, context: click.Context) -> str:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    return "".join(form.tagged(left, right) for left, right in filter(None, records))


def command_page(
    form: Form, group: click.Group, parent: click.Context, command_name: str, sentence: str
) -> str:
    import click

    command = group.get_command(parent, command_name)
    assert command is not None
    context = click.Context(command, info_name=command_name, parent=parent)
    described, titled = help_parts(form, command.help or "")
    usage = " ".join(command.collect_usage_pieces(context))
    return "".join(
        (
            form.heading(f"hakmem-{command_name}", 1, version()),
            form.name(f"hakmem-{command_name}", uncapitalised(sentence)),
            form.section("synopsis", form.usage(f"hakmem {command_name}", usage)),
            form.section("description", described),
            form.section("options", option_entries(form, command, context)),
            titled_sections(form, titled),
            form.see_also(("hakmem", 1), ("hakmem-options", 7)),
        )
    )


def uncapitalised(sentence: str) -> str:
    return (sentence[0].lower() + sentence[1:]).rstrip(".")


def tool_pages(form: Form) -> Pages:
    sys.path.insert(0, str(TOOL))
    import click
    from hakmem.cli import COMMANDS, EPILOG, main

    context = click.Context(main, info_name="hakmem", **main.context_settings)
    described, _ = help_parts(form, main.help or "")
    _, titled = help_parts(form, EPILOG)
    commands = "".join(
        form.tagged(f"hakmem {word}", f"{text} See hakmem-{word}(1).") for word, text in COMMANDS.items()
    )
    others = (*((f"hakmem-{word}", 1) for word in COMMANDS), ("hakmem-options", 7), ("libhakmem", 3))
    page = "".join(
        (
            form.heading("hakmem", 1, version()),
            form.name("hakmem", ABOUT_TOOL),
            form.section("synopsis", form.usage("hakmem", " ".join(main.collect_usage_pieces(context)))),
            form.section("description", described),
            form.section("commands", commands),
            form.section("options", option_entries(form, main, context)),
            titled_sections(form, titled),
            form.see_also(*others),
        )
    )
    pages = {"man1/hakmem.1": page}
    for word, sentence in COMMANDS.items():
        pages[f"man1/hakmem-{word}.1"] = command_page(form, main, context, word, sentence)
    return pages
