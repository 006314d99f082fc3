"""Figures by a key, of which some thousand come and go at a time."""

from __future__ import annotations

import numpy as np

from hakmem.layout.memory import Flags, Integers, Records

ROOM_MIN = 1 << 16
GROWTH = 1.25


class Table:
    """Columns of one length, in the order of their keys."""

    def __init__(self, keys: Records, *columns: Records) -> None:
        self._count = len(keys)
        self._gone = 0  # rows that are not alive
        self._arrays = [keys, np.ones(len(keys), np.bool_), *columns]

    def __len__(self) -> int:
        return self._count - self._gone

    @property
    def columns(self) -> tuple[Records, ...]:
        """But for the keys."""
        self._pack()
        return tuple(array[: self._count] for array in self._arrays[2:])

    def find(self, keys: Records) -> tuple[Integers, Flags]:
        """The row of each key, and whether there is one."""
        known, is_alive = (array[: self._count] for array in self._arrays[:2])
        if not self._count:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        places = np.minimum(np.searchsorted(known, keys), self._count - 1)
        return places, np.asarray((known[places] == keys) & is_alive[places])

    def at(self, column: int, places: Integers) -> Records:
        """Some of a column's figures; of an empty table zeros."""
        found = self._arrays[2 + column]
        return found[places] if self._count else np.zeros(len(places), found.dtype)

    def put(self, column: int, places: Integers, values: Records) -> None:
        self._arrays[2 + column][places] = values

    def remove(self, places: Integers) -> None:
        self._arrays[1][places] = False
        self._gone += len(places)
        if 4 * self._gone > self._count:
            self._pack()

    def add(self, keys: Records, *columns: Records) -> None:
        """Rows in the order of their keys, none of which is there."""
        if not len(keys):
            return
        added = [keys, np.ones(len(keys), np.bool_), *columns]
        if self._count and keys[0] <= self._arrays[0][self._count - 1]:
            self._pack()
            places = np.searchsorted(self._arrays[0][: self._count], keys)
            for number, values in enumerate(added):
                self._arrays[number] = np.insert(self._arrays[number][: self._count], places, values)
            self._count += len(keys)
            return
        end = self._count + len(keys)
        for number, values in enumerate(added):
            array = self._arrays[number]
            if end > len(array):
                array = np.empty(max(ROOM_MIN, int(end * GROWTH)), array.dtype)
                array[: self._count] = self._arrays[number][: self._count]
                self._arrays[number] = array
            array[self._count : end] = values
        self._count = end

    def _pack(self) -> None:
        """Without the rows that are not alive."""
        if not self._gone:
            return
        is_alive = self._arrays[1][: self._count].copy()
        count = self._count - self._gone
        for array in self._arrays:
            array[:count] = array[: self._count][is_alive]
        self._count, self._gone = count, 0
