"""The inputs of the real programs, the same on every machine: random numbers come from fixed seeds."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr


def make_once(path: Path, amount: int, write: Callable[[Path, int], None]) -> Path:
    """The path, written by `write` unless it is there.  Written beside and renamed: another campaign may
    be at it too."""
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        write(unfinished, amount)
        unfinished.rename(path)
    return path


def words(source: random.Random, count: int) -> list[str]:
    """Made-up words of 2 to 16 letters."""
    return [source.randbytes(source.randint(1, 8)).hex() for _ in range(count)]


def write_text(path: Path, kib: int) -> None:
    """Text of random words: it compresses about as well as a log does."""
    source = random.Random(7)
    vocabulary = words(source, 4000)
    text = " ".join(source.choices(vocabulary, k=kib * 128))
    path.write_text(text[: kib * 1024])


def _items(count: int) -> Iterator[dict[str, Any]]:
    source = random.Random(11)
    vocabulary = words(source, 2000)
    for number in range(count):
        yield {
            "id": number,
            "owner": source.randrange(200),
            "name": f"{source.choice(vocabulary)}-{number}",
            "price": round(source.random() * 100, 2),
            "tags": source.sample(vocabulary, source.randrange(6)),
        }


def write_json(path: Path, items: int) -> None:
    """An array of small objects."""
    path.write_text(json.dumps(list(_items(items))))


def write_xml(path: Path, items: int) -> None:
    """Elements with attributes, children and text."""
    with path.open("w") as out:
        out.write("<items>\n")
        for item in _items(items):
            tags = "".join(f"<tag>{tag}</tag>" for tag in item["tags"])
            name = quoteattr(str(item["name"]))
            out.write(f'<item id="{item["id"]}" owner="{item["owner"]}" name={name}>')
            out.write(f"<price>{item['price']}</price>{tags}</item>\n")
        out.write("</items>\n")


def write_history(path: Path, commits: int) -> None:
    """A stream for `git fast-import`: files of text lines that change a little with every commit."""
    source = random.Random(5)
    vocabulary = words(source, 3000)
    files = [[" ".join(source.choices(vocabulary, k=8)) for _ in range(200)] for _ in range(40)]
    with path.open("w") as out:
        for number in range(commits):
            changed = source.sample(range(len(files)), 3)
            out.write(
                f"commit refs/heads/main\ncommitter A U Thor <a@example.org> {1700000000 + number} +0000\n"
            )
            out.write(f"data {len(str(number))}\n{number}\n")
            for which in changed:
                lines = files[which]
                for _ in range(4):
                    lines[source.randrange(len(lines))] = " ".join(source.choices(vocabulary, k=8))
                text = "\n".join(lines) + "\n"
                out.write(f"M 100644 inline part{which % 7}/file{which}.txt\ndata {len(text)}\n{text}\n")
