"""The options, as src/config/options.def, the one table of them, has them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from doc_tables import arguments, table

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "config" / "options.def"


@dataclass(frozen=True)
class Option:
    kind: str
    field: str
    default: str
    minimum: str
    maximum: str
    sentence: str

    @property
    def name(self) -> str:
        return f"HAKMEM_{self.field.upper()}"

    def row(self) -> tuple[str, ...]:
        values = {"FLAG": "0 or 1", "TEXT": "text"}.get(self.kind, f"{self.minimum} to {self.maximum}")
        default = "none" if self.default == '""' else self.default
        return f"`{self.name}`", default, values, self.sentence


def groups() -> list[tuple[str, list[Option]]]:
    """The options under the comments that head their groups in the table."""
    found: list[tuple[str, list[Option]]] = []
    for line in TABLE.read_text().splitlines():
        if heading := re.fullmatch(r"/\* (.*) \*/", line):
            found.append((heading[1], []))
        elif row := re.match(r"OPTION\((.*)\)$", line):
            kind, field, default, minimum, maximum, sentence = arguments(row[1])
            option = Option(kind, field, default, minimum, maximum, ast.literal_eval(sentence))
            found[-1][1].append(option)
    return found


def options() -> list[Option]:
    return [option for _, group in groups() for option in group]


def tables() -> str:
    """A table for each group."""
    head = "option | default | values | effect"
    return "\n".join(
        f"\n## {heading[0].upper()}{heading[1:]}\n\n{table(head, [option.row() for option in group])}"
        for heading, group in groups()
    )


PARTS = {"options": tables}
