"""Manual pages in the man macros, from plain text: a form of manual.py."""

from __future__ import annotations

import os
import re
import textwrap
from datetime import UTC, datetime

import manual


def escaped(text: str) -> str:
    """As it reads on the page; ASCII hyphens stay hyphens that can be searched for and copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("~", "\\(ti").replace("^", "\\(ha")
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def page_date() -> str:
    """SOURCE_DATE_EPOCH's, or none: a page does not change because it was made on another day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch), UTC).date().isoformat() if epoch else ""


def heading(page: str, number: int, version: str) -> str:
    title = f'{escaped(page.upper())} {number} "{page_date()}" "hakmem {version}" hakmem'
    return f'.\\" Written by scripts/man-pages.\n.TH {title}\n.nh\n.ad l\n'


def section(title: str, body: str) -> str:
    return f'.SH "{title.upper()}"\n{body}' if body else ""


def name(what: str, sentence: str) -> str:
    return section("name", f"{escaped(what)} \\- {escaped(sentence)}\n")


def subsection(title: str, body: str) -> str:
    return f'.SS "{escaped(title)}"\n{body}'


def usage(command: str, arguments: str) -> str:
    return f".B {escaped(command)}\n{escaped(arguments)}\n"


def declarations(include: str, functions: list[str]) -> str:
    lines = "".join(f"{bold(function)}\n" for function in functions)
    return f".nf\n{bold(f'#include {include}')}\n\n{lines}.fi\n"


def described(declared: list[str], text: str) -> str:
    """Declarations as terms; the first paragraph of the text belongs to them, others keep its indent.  The
    fields of a struct come last."""
    terms = "\n.TQ\n".join(bold(each.partition(" {")[0]) for each in declared)
    fields = "".join(literal(each) for each in declared if "\n" in each)
    body = prose(text).removeprefix(".PP\n") + fields
    return f".TP\n{terms}\n" + body.replace(".PP\n", ".IP\n")


def tagged(term: str, text: str) -> str:
    """A term, in bold, and what it is."""
    return f".TP\n{bold(term)}\n{filled(text, '')}"


def literal(text: str) -> str:
    """As it is, line by line."""
    return f".PP\n.nf\n.RS\n{escaped(textwrap.dedent(text).strip(chr(10)))}\n.RE\n.fi\n"


def filled(text: str, begin: str = ".PP\n") -> str:
    words = re.sub(r"\\\(ga(.+?)\\\(ga", r"\\fB\1\\fR", escaped(" ".join(text.split())))
    return f"{begin}{words}\n" if words else ""


def prose(text: str) -> str:
    parts = []
    for each in manual.paragraphs(text):
        parts.append(literal(each.text) if each.is_literal else filled(each.text))
        parts.extend(filled(point, ".IP \\(bu 2\n") for point in each.points)
    return "".join(parts)


def see_also(*pages: tuple[str, int]) -> str:
    return section("see also", ",\n".join(f"{bold(page)}({number})" for page, number in pages) + "\n")
