"""Texts for CPython: texts.py ROUNDS.  Lines of a log are written, matched, rewritten and counted by regular
expressions, and read as JSON and as fields; a part of the words outlives the round."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
from collections import Counter

LINES = 6_000
FIELD = re.compile(r"(?P<key>[a-z]+)=(?P<value>\"[^\"]*\"|\S+)")
NUMBER = re.compile(r"\b\d+\b")


def lines_of(source: random.Random) -> list[str]:
    words = [source.randbytes(source.randint(2, 9)).hex() for _ in range(300)]
    return [
        f'time={number} level={source.choice(words)} user="{source.choice(words)} {source.choice(words)}" '
        f"path=/{'/'.join(source.choices(words, k=4))} took={source.randrange(10_000)}"
        for number in range(LINES)
    ]


def one_round(source: random.Random, seen: Counter[str]) -> int:
    lines = lines_of(source)
    rows = [{match["key"]: match["value"] for match in FIELD.finditer(line)} for line in lines]
    text = "\n".join(NUMBER.sub(lambda match: f"<{len(match[0])}>", line) for line in lines)
    seen.update(re.findall(r"[0-9a-f]{6,}", text))
    table = io.StringIO()
    writer = csv.DictWriter(table, ("time", "level", "user", "path", "took"))
    writer.writerows(rows)
    read = list(csv.reader(io.StringIO(table.getvalue())))
    return len(json.loads(json.dumps(rows))) + len(read) + len(text.upper().split("/"))


def main() -> None:
    source, seen, total = random.Random(3), Counter[str](), 0
    for _ in range(int(sys.argv[1])):
        total += one_round(source, seen)
        for word, _ in seen.most_common()[:-2_000:-1]:
            del seen[word]
    print(total, len(seen))


main()
