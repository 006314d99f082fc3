#!/usr/bin/env python3
"""Lines of Python that hold memory at a program's end: hakmem's against memray's.

    build/venv/bin/python bench/profilers/lines.py PYTHON [PROGRAM …]

PYTHON is an interpreter that has memray, and numpy for `arrays`; all objects come from malloc.  A row: the
lines with 1 % of memray's bytes and more, those of them among hakmem's ten largest, and the bytes of
memray's ten largest lines, outside of imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from comparison.python_programs import PROGRAMS
from hakmem.profile.files import load

TOOL = [sys.executable, "-m", "hakmem"]
PERIOD_BYTES, LARGEST, SHARE = 4096, 10, 0.01
WAIT = """\
import os, runpy, time
print(os.getpid(), flush=True)
kept = runpy.run_path({!r}, run_name="__main__")
print("ready", flush=True)
time.sleep(60)
"""
READ = """\
import json, memray, sys
records = memray.FileReader(sys.argv[1]).get_leaked_allocation_records(merge_threads=True)
stacks = [(record.stack_trace(max_stacks=1), record.size) for record in records]
print(json.dumps([[*stack[0][1:], size] for stack, size in stacks if stack]))
"""
Lines = Counter[tuple[str, int]]


def of_memray(python: str, program: Path, folder: Path) -> Lines:
    file, found = folder / f"{program.stem}.bin", Lines()
    words = [python, "-m", "memray", "run", "-q", "--trace-python-allocators", "-o", str(file), str(program)]
    subprocess.run(words, env=os.environ | {"PYTHONMALLOC": "malloc"}, check=True)
    told = subprocess.run([python, "-c", READ, file], check=True, capture_output=True, text=True)
    for path, line, size in json.loads(told.stdout):
        found[path, line] += size
    return found


def of_hakmem(python: str, program: Path, folder: Path) -> Lines:
    file, found = folder / f"{program.stem}.json", Lines()
    run = [*TOOL, "run", "--python", "--profile", "--period", PERIOD_BYTES, "-o", folder / "run.json"]
    words = [str(word) for word in (*run, "--", python, "-c", WAIT.format(str(program)))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert process.stdout.readline() == "ready\n"
        subprocess.run([*TOOL, "profile", str(pid), "-o", file], check=True, capture_output=True)
        os.kill(pid, 9)
    profile = load(file)
    for one in profile.samples:
        frames = (frame for address in one.stack for frame in profile.names.get(address, ()))
        place = next(((frame.file, frame.line) for frame in frames if frame.file.endswith(".py")), ("", 0))
        found[place] += round(one.weight_blocks * one.requested_bytes)
    return found


def largest(lines: Lines) -> list[tuple[str, int]]:
    return [place for place, _ in lines.most_common() if place[0] and not place[0].startswith("<")][:LARGEST]


def main(python: str, names: list[str]) -> None:
    print("program      lines  found  bytes of memray  of hakmem  difference  seconds")
    for name in names or PROGRAMS:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, f"{name}.py")
            program.write_text(PROGRAMS[name])
            theirs, ours = (read(python, program, Path(folder)) for read in (of_memray, of_hakmem))
        top = largest(theirs)
        wanted = [place for place in top if theirs[place] >= SHARE * theirs.total()]
        found = sum(place in largest(ours) for place in wanted)
        sums = [sum(lines[place] for place in top) for lines in (theirs, ours)]
        print(
            f"{name:12} {len(wanted):5} {found:6} {sums[0]:16,} {sums[1]:10,} "
            f"{sums[1] / sums[0] - 1:+11.1%} {time.monotonic() - began_s:8.1f}"
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
