"""Shared by the pages of a recording and of a profile: self-contained files of HTML."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from hakmem import __version__


@dataclass(frozen=True)
class Tile:
    """One figure at the top of a page."""

    name: str
    value: str
    note: str


def rendered(template: str, data: dict[str, Any], **values: object) -> str:
    """The page as text; `data` is what its script reads."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hakmem.views", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        tool_version=__version__, data=Markup(script_json(data)), **values
    )


def script_json(value: dict[str, Any]) -> str:
    """JSON for a script element: it cannot close the element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
