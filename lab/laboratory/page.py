"""The page: one self-contained HTML file."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import jinja2

from .build import LAB
from .subjects import EXPERIMENTS


def _head_comment(name: str) -> str:
    """A strategy's description in its file: hypothesis, the seed's result, the reason."""
    path = LAB / "strategies" / f"{name.replace('-', '_')}.c"
    comment = path.read_text().split("*/", 1)[0]
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.splitlines()[3:]]
    return "\n".join(lines).strip()


def write_page(path: Path, chart: Path, **values: object) -> None:
    """Renders page.html.j2 with the chart inside."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    text = environment.get_template("page.html.j2").render(
        chart=base64.b64encode(chart.read_bytes()).decode(),
        heads_of_strategies=[(name, _head_comment(name)) for name in EXPERIMENTS],
        **values,
    )
    path.write_text(text)
