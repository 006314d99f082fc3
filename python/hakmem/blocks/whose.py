"""The owner of the blocks in an answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from hakmem.target.target import Target


@dataclass
class Whose:
    """The head of `hakmem what`'s and `hakmem leaks`' answers."""

    pid: int
    command: list[str]
    is_core: bool
    version: str  # of hakmem in the process

    @staticmethod
    def head_of(target: Target) -> dict[str, Any]:
        """The values of these fields."""
        return {
            "pid": target.pid,
            "command": target.command,
            "is_core": target.process is None,
            "version": target.schema.version,
        }

    def head_to_json(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(Whose)}
