"""Shared by the pages of a recording and of a profile: self-contained files of HTML."""

from __future__ import annotations

import json
from typing import Any

import jinja2
from markupsafe import Markup

from hakmem import __version__
from hakmem.base.sizes import bytes_text, count_text, share_text
from hakmem.profile.estimate import Estimate
from hakmem.profile.labels import caller_text, frame_text
from hakmem.views.profile_text import CALLER, interval_text, signed_bytes, span_text

Tile = tuple[str, str, str]  # a figure at the top of a page: its name, its value, a note


def width(estimate: Estimate) -> float:
    """The relative width of the interval: to sort by how much is known."""
    low, high = estimate.interval
    return (high - low) / max(1.0, estimate.value)


FILTERS = {
    "bytes": bytes_text,
    "count": lambda value: count_text(round(value)),
    "rate": lambda value: f"{count_text(value)}/s",
    "share": share_text,
    "signed": signed_bytes,
    "interval": interval_text,
    "span": lambda ends: span_text(*ends),
    "width": width,
    "innermost": lambda frames: frame_text(frames[0]) if frames else "unknown",
    "callers": lambda frames: "".join(CALLER + caller_text(frame) for frame in frames[1:]),
    "functions": lambda frames: CALLER.join(frame.function for frame in frames),
}


def rendered(template: str, data: dict[str, Any], **values: object) -> str:
    """The page as text; `data` is what its script reads."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hakmem.views", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    script = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # cannot close its element
    return environment.get_template(template).render(tool_version=__version__, data=Markup(script), **values)
