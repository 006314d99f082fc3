"""The header and the exact counts as JSON: part of the JSON format, and a comment in pprof files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hakmem.base.validity import built
from hakmem.profile.model import ClassCount, Header


def header_to_json(header: Header) -> dict[str, Any]:
    return asdict(header)


def header_from_json(data: Mapping[str, Any]) -> Header:
    """ValueError, KeyError or TypeError if it is not a header."""
    return built(Header, {name: data[name] for name in asdict(Header())})


def classes_to_json(classes: list[ClassCount]) -> list[dict[str, int]]:
    return [asdict(count) for count in classes]


def classes_from_json(data: list[dict[str, int]]) -> list[ClassCount]:
    """ValueError or TypeError if they are not counts."""
    return built(list[ClassCount], data)
