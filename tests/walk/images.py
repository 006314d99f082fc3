"""A core of a process that waits, as the kernel writes it: its writable segments, and the names of files; and
a 32-bit program."""

import struct
from contextlib import suppress
from pathlib import Path

PAGE = 4096
HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
LOAD, NOTE, FILES, CORE, READ_WRITE = 1, 4, 0x46494C45, 4, 6


def core_of(pid: int, path: Path) -> Path:
    """Written to a file, which it returns."""
    segments, rows, names = [], [], b""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights, offset, _, inode, *name = line.split(maxsplit=5)
            begin, end = (int(word, 16) for word in place.split("-"))
            if inode != "0":
                rows.append((begin, end, int(offset, 16) // PAGE))
                names += name[0].encode() + b"\0"
            if rights.startswith("rw"):
                memory.seek(begin)
                with suppress(OSError):  # pages after a file's end
                    segments.append((begin, memory.read(end - begin)))
    files = struct.pack("<QQ", len(rows), PAGE) + b"".join(struct.pack("<QQQ", *row) for row in rows) + names
    note = struct.pack("<III8s", 5, len(files), FILES, b"CORE") + files + bytes(-len(files) % 4)
    count = len(segments) + 1
    at = HEAD.size + count * SEGMENT.size
    head = HEAD.pack(b"\x7fELF\2\1\1", CORE, 62, 1, 0, HEAD.size, 0, 0, 64, SEGMENT.size, count, 0, 0, 0)
    table, content = SEGMENT.pack(NOTE, 0, at, 0, 0, len(note), 0, 1), note
    for begin, part in segments:
        content += bytes(-(at + len(content)) % PAGE)
        sizes = (len(part), len(part), PAGE)
        table += SEGMENT.pack(LOAD, READ_WRITE, at + len(content), begin, 0, *sizes)
        content += part
    path.write_bytes(head + table + content)
    return path


def program_of_32_bits(path: Path) -> Path:
    """It calls pause() for ever: written by hand, as few machines have a compiler for it."""
    base, code = 0x8048000, bytes.fromhex("b81d000000 cd80 ebf7")  # mov $29, %eax; int $0x80; jmp
    size = 84 + len(code)
    head = struct.pack(
        "<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0
    )
    path.write_bytes(head + struct.pack("<8I", 1, 0, base, base, size, size, 5, 4096) + code)
    path.chmod(0o755)
    return path
