"""Writes a repository's history for `git fast-import`: the same bytes each time.

python3 history.py COMMITS > stream
"""

import random
import sys
from collections.abc import Iterator

FILES = 400
CHANGES_PER_COMMIT = 6
LINES_PER_FILE = 120
BINARY_FILE_BYTES = 300_000
FIRST_SECOND = 1_600_000_000

WORDS = "slab magazine refill flush page owner remote pending partial registry superslab route".split()


def data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def lines(source: random.Random, count: int) -> list[str]:
    return [" ".join(source.choices(WORDS, k=source.randint(3, 12))) for _ in range(count)]


def stream(commits: int) -> Iterator[bytes]:
    """The fast-import commands of `commits` commits on main, with some binary files and tags."""
    source = random.Random(20251120)
    tree: dict[str, list[str]] = {}
    for number in range(commits):
        who = b"A Person <person@example.org> %d +0000" % (FIRST_SECOND + 60 * number)
        yield b"commit refs/heads/main\ncommitter " + who + b"\n"
        yield data(f"Change {number}\n\n{lines(source, 1)[0]}\n".encode())
        for _ in range(CHANGES_PER_COMMIT):
            index = source.randrange(FILES)
            path = f"part{index % 20}/file{index}.txt"
            text = tree.setdefault(path, lines(source, LINES_PER_FILE))
            text[source.randrange(len(text))] = lines(source, 1)[0]
            text.insert(source.randrange(len(text)), f"line of change {number}")
            yield b"M 100644 inline " + path.encode() + b"\n" + data("\n".join(text).encode() + b"\n")
        if number % 50 == 0:
            yield b"M 100644 inline binary%d\n" % (number % 200) + data(source.randbytes(BINARY_FILE_BYTES))
            yield b"tag v%d\nfrom refs/heads/main\ntagger " % number + who + b"\n" + data(b"a tag\n")
    yield b"done\n"


if __name__ == "__main__":
    for part in stream(int(sys.argv[1])):
        sys.stdout.buffer.write(part)
