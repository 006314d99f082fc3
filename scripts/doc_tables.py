"""Tables: their rows as the sources have them, and as a page has them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def arguments(inner: str) -> list[str]:
    """Commas divide, except within parentheses or quotes."""
    words = re.findall(r'"(?:\\.|[^"\\])*"|(?:[^,"()]|\((?:[^()]|\([^()]*\))*\))+', inner)
    return [word.strip() for word in words if word.strip()]


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """`head` has the cells of the first line, with | between them."""
    count = head.count("|") + 1
    lines = [head, "---".join("|" * (count + 1)), *(" | ".join(row) for row in rows)]
    return "\n".join(line if line.startswith("|") else f"| {line} |" for line in lines)
