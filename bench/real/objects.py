"""An object-heavy job for CPython: objects.py ROUNDS.  Records are made, indexed, joined as text, written
and read as JSON, and a part of them outlives the round, as in a service that answers requests."""

from __future__ import annotations

import json
import random
import sys

RECORDS = 4_000
KEPT = 40_000


class Record:
    """A small object with a dictionary of its own."""

    def __init__(self, number: int, source: random.Random) -> None:
        self.number = number
        self.name = f"record-{number:08d}-{source.randrange(1 << 30):x}"
        self.tags = [f"tag{source.randrange(500)}" for _ in range(source.randrange(1, 8))]
        self.size = source.random() * number

    def as_dict(self) -> dict[str, object]:
        return {"number": self.number, "name": self.name, "tags": self.tags, "size": self.size}


def one_round(start: int, source: random.Random) -> list[dict[str, object]]:
    records = [Record(start + n, source) for n in range(RECORDS)]
    by_tag: dict[str, list[Record]] = {}
    for record in records:
        for tag in record.tags:
            by_tag.setdefault(tag, []).append(record)
    lines = [f"{tag}: " + ", ".join(r.name for r in found) for tag, found in sorted(by_tag.items())]
    words = {word for line in lines for word in line.split(", ")}
    text = json.dumps([record.as_dict() for record in records if record.name in words or record.size])
    return json.loads(text)  # type: ignore[no-any-return]


def main() -> None:
    source = random.Random(1)
    kept: list[dict[str, object]] = []
    for number in range(int(sys.argv[1])):
        kept += one_round(number * RECORDS, source)
        source.shuffle(kept)
        del kept[KEPT:]
    print(len(kept))


main()
