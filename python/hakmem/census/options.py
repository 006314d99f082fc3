"""The options of a process: the values in its memory, which ones differ from the default, and whether its
environment set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Memory
from hakmem.layout.schema import Schema
from hakmem.target.process import Process

PREFIX = "HAKMEM_"
ENVIRONMENT, ITSELF, UNKNOWN = "environment", "program", "unknown"
WHERE = {
    ENVIRONMENT: "its environment",
    ITSELF: "not in its current environment: set by the program, or overwritten since",
    UNKNOWN: "unknown: its environment cannot be read",
}


@dataclass(frozen=True)
class ChangedOption:
    variable: str
    value: int | str
    default: str
    source: str  # of WHERE


def read_options(memory: Memory, schema: Schema) -> dict[str, int | str]:
    fields = schema.records["options"].fields
    return {
        name: memory.text(value) if fields[name].type == "t" else value
        for name, value in schema.numbers(memory, "options").items()
    }


def option_defaults(schema: Schema) -> dict[str, str]:
    """They are where other fields have their unit."""
    return {name: item.unit.strip('"') for name, item in schema.meta("options").items() if item.unit}


def changed_options(
    values: Mapping[str, int | str], defaults: Mapping[str, str], environment: Mapping[str, str] | None
) -> list[ChangedOption]:
    """The options that differ from the default; `environment` is the one at the start of the process."""
    found = []
    for name, value in values.items():
        if name in defaults and str(value) != defaults[name]:
            variable = PREFIX + name.upper()  # decay_ms → HAKMEM_DECAY_MS
            source = UNKNOWN if environment is None else ENVIRONMENT if variable in environment else ITSELF
            found.append(ChangedOption(variable, value, defaults[name], source))
    return found


def environment_of(process: Process | None) -> dict[str, str] | None:
    """The HAKMEM_* variables at its start (it may have overwritten them); None: unreadable."""
    if process is None:
        return None
    try:
        strings = process.environment()
    except HakmemError:
        return None
    return {name: value for name, value in strings.items() if name.startswith(PREFIX)}
