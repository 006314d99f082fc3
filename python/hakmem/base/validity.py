"""Checks that values read from a file have the types that their dataclass declares: JSON may hold
anything."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")

FIGURE_MAX = 1 << 64  # bytes, counts or seconds: no machine has more


def check(record: Any) -> None:  # noqa: ANN401 - any dataclass
    """ValueError names the first field that does not match its annotation."""
    for name, hint in hints_of(type(record)).items():  # type: ignore[arg-type]  # a type is hashable
        _check(getattr(record, name), hint, name)


def fits(value: Any, kind: type[Kind], name: str) -> Kind:  # noqa: ANN401 - any JSON value
    """The value if it has this type; else ValueError."""
    _check(value, kind, name)
    return value  # type: ignore[no-any-return]


@lru_cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a dataclass's fields, resolved."""
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind)}


def _check(value: Any, hint: Any, name: str) -> None:  # noqa: ANN401
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        _check_union(value, parts, name)
    elif origin is list:
        _need(isinstance(value, list), name)
        for item in value:
            _check(item, parts[0], name)
    elif origin is dict:
        _need(isinstance(value, dict), name)
        for key, item in value.items():
            _check(item, parts[1], f"{name}.{key}")
    elif is_dataclass(hint):
        _need(isinstance(value, hint), name)  # type: ignore[arg-type]
        check(value)
    else:
        _need(_is_plain(value, hint), name)


def _check_union(value: Any, parts: tuple[Any, ...], name: str) -> None:  # noqa: ANN401
    def wrongs() -> Iterator[ValueError]:
        for part in parts:
            try:
                _check(value, part, name)
            except ValueError as error:
                yield error

    errors = list(wrongs())
    if len(errors) == len(parts):
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
