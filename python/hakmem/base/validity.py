"""Records from what a file holds: JSON may hold anything, so each value is compared with the type that the
dataclass declares."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from hakmem.base.errors import HakmemError

Kind = TypeVar("Kind")

FIGURE_MAX = 1 << 64  # bytes, counts or seconds: no machine has more
UNFIT = (LookupError, TypeError, AttributeError, ValueError)  # raised by data of another form


def check_format(data: Mapping[str, Any], name: str, version: int) -> None:
    """HakmemError for another version of a file's format."""
    found = data.get("format_version")
    if found != version:
        raise HakmemError(
            f"{name} has format {found}, this tool reads {version}; use hakmem {data.get('tool_version', '')}"
        )


@contextmanager
def undamaged(name: str) -> Iterator[None]:
    """HakmemError where the data of this file do not fit."""
    try:
        yield
    except UNFIT as error:
        raise HakmemError(f"{name} is damaged: {what_is_wrong(error)}") from None


def what_is_wrong(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def built(kind: type[Kind], value: Any, name: str = "the record") -> Kind:  # noqa: ANN401 - any JSON value
    """The value of this type; ValueError names the first part that does not match.  Of a dataclass unknown
    keys, of a newer tool, are ignored; KeyError if one without a default is missing."""
    return _built(kind, value, name)  # type: ignore[no-any-return]


@lru_cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a dataclass's fields, resolved."""
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind)}


def _built(hint: Any, value: Any, name: str) -> Any:  # noqa: ANN401
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _first_that_fits(parts, value, name)
    if origin is list:
        _need(isinstance(value, list), name)
        return [_built(parts[0], item, name) for item in value]
    if origin is dict:
        _need(isinstance(value, Mapping), name)
        return {key: _built(parts[1], item, f"{name}.{key}") for key, item in value.items()}
    if is_dataclass(hint):
        _need(isinstance(value, Mapping), name)
        for item in fields(hint):
            if item.default is MISSING is item.default_factory and item.name not in value:
                raise KeyError(item.name)
        of_fields = hints_of(hint).items()  # type: ignore[arg-type]  # a type is hashable
        return hint(**{key: _built(part, value[key], key) for key, part in of_fields if key in value})  # type: ignore[operator]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    _need(_is_plain(value, hint), name)
    return value


def _first_that_fits(parts: Sequence[Any], value: Any, name: str) -> Any:  # noqa: ANN401
    errors = []
    for part in parts:
        try:
            return _built(part, value, name)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def _is_plain(value: Any, hint: Any) -> bool:  # noqa: ANN401
    if hint in (None, types.NoneType):
        return value is None
    if hint in (int, float):
        numbers = (int,) if hint is int else (int, float)
        return isinstance(value, numbers) and not isinstance(value, bool) and abs(value) <= FIGURE_MAX
    return isinstance(value, hint)


def _need(is_right: bool, name: str) -> None:
    if not is_right:
        raise ValueError(f"{name} has an invalid value")
