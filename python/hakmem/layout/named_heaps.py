"""Heaps that the program has made, and names that it has given to threads' heaps, read from a target.

    named_rows ──▶ row ──▶ record     a row has a bit for each record in use; others' pages may have gone back

In the owner map, entries of their blocks have the record's number where
others have a heap's tag: map_tag_named | number << map_tag_shift, beside the class."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hakmem.layout.heaps import heap_column
from hakmem.layout.memory import Flags, Integers, Memory, Numbers, Records, Words
from hakmem.layout.schema import Schema
from hakmem.layout.structures import POINTER, rows_in

ROOT, ROW, RECORD = "named_rows", "named_row", "named_heap"
MADE = ("named_in_use", "named_cut_off")  # by the program
OF_THREAD = "named_of_thread"
LANE = "named_lane"  # blocks of a heap that threads take apart from each other
SUMS = ("allocated_blocks", "freed_blocks", "freed_remotely")


@dataclass
class NamedHeaps:
    """The records in use: one row each."""

    all_owners: Records  # of the records
    records: Records
    owners: Words  # the addresses of their owners, as slabs name them
    is_of_thread: Flags
    is_cut_off: Flags  # in a forked child: another thread was changing it
    thread_numbers: Integers  # of the threads' heaps that have a name here; 0: made by the program
    users: Integers  # threads whose malloc gives their blocks
    serials: Integers  # which of all heaps so far
    lane_owners: Words
    lane_rows: Integers  # of their heaps

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def numbers(self) -> Integers:
        found: Integers = self.records["owner"]["number"].astype(np.int64)
        return found

    @cached_property
    def names(self) -> list[str]:
        return [text_of(bytes(name)) for name in self.records["name"]]

    @cached_property
    def of_threads(self) -> dict[int, str]:
        """The names of threads' heaps, by their numbers."""
        return dict(zip(self.thread_numbers.tolist(), self.names, strict=True))

    def rows_of(self, owners: Words) -> Integers:
        """The rows of the heaps that the program has made and that have these owners; -1: no such heap's."""
        made = np.flatnonzero(~self.is_of_thread)
        known = np.concatenate((self.owners[made], self.lane_owners))
        return _rows(known, np.concatenate((made, self.lane_rows)), owners)

    def rows_of_numbers(self, numbers: Integers) -> Integers:
        """`rows_of` by the numbers in the owner map."""
        return _rows(self.numbers[~self.is_of_thread], np.flatnonzero(~self.is_of_thread), numbers)


def _rows(known: Records, rows: Integers, wanted: Records) -> Integers:
    place, is_known = rows_in(known, wanted)
    found = np.full(len(wanted), -1, np.int64)
    found[is_known] = rows[place[is_known]]
    return found


def text_of(name: bytes) -> str:
    """Any bytes; a sequence that the end of the field has cut is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(name.split(b"\0")[0])


def read_named_heaps(memory: Memory, schema: Schema) -> NamedHeaps:
    addresses = _addresses(memory, schema)
    records = memory.records(addresses, schema.dtype(RECORD))
    states = [schema.constant(name) for name in (*MADE, OF_THREAD)]
    owners, rows = records["owner"], np.flatnonzero(np.isin(records["state"], states))
    lanes = np.flatnonzero(records["state"] == schema.constant(LANE))
    lane_rows = _rows(addresses[rows], np.arange(len(rows)), records["stands_for"][lanes].astype(np.uint64))
    lanes, lane_rows = lanes[lane_rows >= 0], lane_rows[lane_rows >= 0]
    lane_owners = addresses[lanes] + np.uint64(schema.offset(RECORD, "owner"))
    of_lanes, addresses, records = records[lanes], addresses[rows], records[rows]
    _add_lanes(records, of_lanes, lane_rows)
    users = records["users"].astype(np.int64)
    return NamedHeaps(
        owners,
        records,
        addresses + np.uint64(schema.offset(RECORD, "owner")),
        records["state"] == schema.constant(OF_THREAD),
        records["state"] == schema.constant("named_cut_off"),
        _thread_numbers(memory, schema, records["thread_heap"].astype(np.uint64)),
        np.where(users == schema.constant("named_closed"), 0, users),  # 0: it is being destroyed
        records["serial"].astype(np.int64),
        lane_owners,
        lane_rows,
    )


def _add_lanes(records: Records, lanes: Records, rows: Integers) -> None:
    """A heap's figures are those of its lanes as well."""
    for name in SUMS:
        np.add.at(records[name], rows, lanes[name])
    np.add.at(records["owner"]["bytes_out"], rows, lanes["owner"]["bytes_out"])
    np.maximum.at(records["peak_bytes"], rows, lanes["peak_bytes"])


def _addresses(memory: Memory, schema: Schema) -> Words:
    rows = memory.array(schema.root(ROOT), POINTER, schema.constant("named_row_count"))
    read = memory.records(rows[rows != 0], schema.dtype(ROW))
    in_use = np.unpackbits(np.ascontiguousarray(read["in_use"]).view(np.uint8), bitorder="little")
    heaps = read["heaps"].ravel()
    found: Words = heaps[in_use.astype(bool) & (heaps != 0)]  # no heap has number 0
    return found


def _thread_numbers(memory: Memory, schema: Schema, heaps: Words) -> Integers:
    found = np.zeros(len(heaps), np.int64)
    is_threads = heaps != 0
    found[is_threads] = heap_column(memory, schema, heaps[is_threads], "owner", "number")
    return found


def named_range_numbers(schema: Schema, entries: Numbers) -> Integers:
    """The numbers of the named heaps whose ranges have these entries in the owner map; 0: no such heap's."""
    first, end = (np.uint32(schema.constant(name)) for name in ("map_tag_named", "map_tag_unowned"))
    numbers = (entries - first) >> np.uint32(schema.constant("map_tag_shift"))
    return np.where((entries >= first) & (entries < end), numbers, 0).astype(np.int64)
