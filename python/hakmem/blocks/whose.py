"""The owner of the blocks in an answer; answers as JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from hakmem.target.target import Target


@dataclass
class Whose:
    """The head of `hakmem what`'s and `hakmem leaks`' answers."""

    pid: int
    command: list[str]
    is_core: bool
    version: str  # of hakmem in the process; of another malloc with its name

    @staticmethod
    def head_of(target: Target) -> dict[str, Any]:
        return {
            "pid": target.pid,
            "command": target.command,
            "is_core": target.process is None,
            "version": target.version,
        }


def as_json(value: Any) -> Any:  # noqa: ANN401 - any part of an answer
    """By the names of its fields, without those that have no representation; addresses are text, shares
    have six digits."""
    if is_dataclass(value):
        parts = {item.name: getattr(value, item.name) for item in fields(value) if item.repr}
        return {name: hex(one) if name.endswith("address") else as_json(one) for name, one in parts.items()}
    if isinstance(value, list):
        return [as_json(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value
