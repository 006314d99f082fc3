"""The manual's pages in Markdown: a form of manual.py for the site, which has them in one folder, manual/."""

from __future__ import annotations

import html
import re
import textwrap

import manual

OPTIONS = "../docs/OPTIONS.md"
# Where a manual page leads that is not written by this form.
ELSEWHERE = {("hakmem-options", "7"): OPTIONS}
TITLES = {"libhakmem": "The C interface"}
NAMES = r"\$?\b(?:hak_\w+|HAKMEM_\w*(?:=\w+)?|malloc_object_size\w*)(?:\*|\(\))?|(?<![\w-])--[a-z][a-z-]+"


def escaped(text: str) -> str:
    """As it reads; a word between stars stays emphasised."""
    text = html.escape(re.sub(r"([\\*_\[\]#`])", r"\\\1", text), quote=False)
    return re.sub(r"\\\*(\w+)\\\*", r"*\1*", text)


def linked(text: str) -> str:
    """Manual pages and pages of docs/ that the text names."""

    def link(found: re.Match[str]) -> str:
        page, number, document = found.groups()
        return f"[{document}.md](../docs/{document}.md)" if document else page_link(page, number)

    return re.sub(r"\b((?:lib)?hakmem[a-z-]*)\((\d)\)|\bdocs/([A-Za-z/]+)\.md\b", link, text)


def page_link(page: str, number: str) -> str:
    return f"[{title_of(page)}]({ELSEWHERE.get((page, number), f'{page}.md')})"


def title_of(page: str) -> str:
    return TITLES.get(page, page.replace("hakmem-", "hakmem ", 1))


def inline(text: str) -> str:
    """One line; names of the library and of options in the font of code, as what is between backquotes."""
    parts = re.split(rf"(`[^`]+`|{NAMES})", " ".join(text.split()))
    marked = [f"`{part.strip('`')}`" if number % 2 else escaped(part) for number, part in enumerate(parts)]
    return linked("".join(marked))


def block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n\n"


def heading(page: str, number: int, version: str) -> str:
    del number, version
    return f"# {title_of(page)}\n\n"


def name(what: str, sentence: str) -> str:
    del what
    return f"{sentence[0].upper()}{inline(sentence[1:])}{'' if sentence.endswith('…') else '.'}\n\n"


def section(title: str, body: str) -> str:
    return f"## {title[0].upper()}{title[1:]}\n\n{body}" if body else ""


def subsection(title: str, body: str) -> str:
    return f"### {escaped(title)}\n\n{body}"


def usage(command: str, arguments: str) -> str:
    return block("", f"{command} {arguments}")


def declarations(include: str, functions: list[str]) -> str:
    return block("c", f"#include {include}\n\n" + "\n".join(functions))


def described(declared: list[str], text: str) -> str:
    """A heading with an anchor for each name, the declarations, and what is said of them."""
    names = [("struct " if "{" in each else "") + manual.declared_name(each) for each in declared]
    first, *others = (each.replace(" ", "-") for each in names)
    anchors = "".join(f'<a id="{each}"></a>' for each in others)
    title = ", ".join(f"`{each}`" for each in names)
    return f"#### {title}{anchors} {{ #{first} }}\n\n{block('c', chr(10).join(declared))}{prose(text)}"


def tagged(term: str, text: str) -> str:
    """A term and what it is; a term of which nothing is said stands in the usage line already."""
    return f"`{term}`\n:   {inline(text)}\n\n" if text else ""


def filled(text: str) -> str:
    return f"{inline(text)}\n\n" if text.strip() else ""


def literal(text: str) -> str:
    return block("", textwrap.dedent(text).strip("\n"))


def prose(text: str) -> str:
    parts = []
    for each in manual.paragraphs(text):
        parts.append(literal(each.text) if each.is_literal else filled(each.text))
        parts.append("".join(f"- {inline(point)}\n" for point in each.points) + "\n")
    return "".join(parts)


def see_also(*pages: tuple[str, int]) -> str:
    """Those that are on the site."""
    links = [page_link(page, str(number)) for page, number in pages if "hakmem" in page]
    return section("see also", ", ".join(links) + "\n")
