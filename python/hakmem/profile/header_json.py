"""The header and the exact counts as JSON: part of the JSON format, and a comment in pprof files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hakmem.base.validity import check
from hakmem.profile.model import ClassCount, Header, Mode, Rate


def header_to_json(header: Header) -> dict[str, Any]:
    return asdict(header)


def header_from_json(data: Mapping[str, Any]) -> Header:
    """ValueError, KeyError or TypeError if it is not a header."""
    known = {name: data[name] for name in asdict(Header())}
    header = Header(**known | {"mode": Mode(data["mode"]), "rates": [Rate(**rate) for rate in data["rates"]]})
    check(header)
    return header


def classes_to_json(classes: list[ClassCount]) -> list[dict[str, int]]:
    return [asdict(count) for count in classes]


def classes_from_json(data: list[dict[str, int]]) -> list[ClassCount]:
    """ValueError or TypeError if they are not counts."""
    found = [ClassCount(**item) for item in data]
    for count in found:
        check(count)
    return found
