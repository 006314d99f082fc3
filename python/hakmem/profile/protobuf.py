"""The wire format of protocol buffers, as far as profiles need it: varints, strings and nested messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
VARINT_BYTES_MAX = 10
WORD = (1 << 64) - 1

Value = int | memoryview


def varint(value: int) -> bytes:
    """Negative numbers as 64-bit two's complement."""
    value &= WORD
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Message:
    """A message that is being written; fields with the default value 0 are left out."""

    def __init__(self) -> None:
        self._out = bytearray()

    def number(self, field: int, value: int) -> Message:
        if value:
            self._out += varint(field << 3 | VARINT) + varint(value)
        return self

    def data(self, field: int, value: bytes) -> Message:
        self._out += varint(field << 3 | BYTES) + varint(len(value)) + value
        return self

    def nested(self, field: int, value: Message) -> Message:
        return self.data(field, bytes(value._out))

    def packed(self, field: int, values: Iterable[int]) -> Message:
        """A repeated number."""
        data = b"".join(map(varint, values))
        return self.data(field, data) if data else self

    def __bytes__(self) -> bytes:
        return bytes(self._out)


def fields_of(data: memoryview) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field, in order; ValueError if it is not a message."""
    at, end = 0, len(data)
    while at < end:
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
            yield key >> 3, value
            continue
        if kind == BYTES:
            size, at = read_varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if at + size > end:
            raise ValueError("a field that is longer than the data")
        yield key >> 3, data[at : at + size]
        at += size


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the next place."""
    value = shift = 0
    for count, byte in enumerate(data[at : at + VARINT_BYTES_MAX], start=1):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & WORD, at + count
        shift += 7
    raise ValueError("a number without an end")


def numbers_of(value: Value) -> list[int]:
    """The values of a repeated number, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        found.append(number)
    return found


def signed(value: int) -> int:
    """An int64 of its two's complement."""
    return value - (1 << 64) if value >> 63 else value


def as_number(value: Value) -> int:
    if not isinstance(value, int):
        raise ValueError("data where a number is expected")
    return value


def as_data(value: Value) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where data is expected")
    return value
