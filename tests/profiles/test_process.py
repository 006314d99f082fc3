"""From the return addresses in a running process to names, files and pprof: nothing is off by one."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hakmem.profile.files import load, save, writer_of
from hakmem.profile.labels import Labels
from hakmem.profile.model import Header, Profile, Sample
from hakmem.profile.names import Sources, mappings_of, name_addresses
from hakmem.target.locate import file_of
from hakmem.target.process import Process
from results import Compile, captured

SOURCE = Path(__file__).parent / "programs" / "stack.c"
LINES = [
    (found[1], number)
    for number, text in enumerate(SOURCE.read_text().splitlines(), start=1)
    if (found := re.search(r"// line of (\w+)", text))
]


@pytest.fixture
def process(compile_c: Compile) -> Iterator[tuple[Process, list[int]]]:
    """The process and its stack."""
    program = compile_c(SOURCE)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        stack = [int(address, 16) for address in child.stdout.readline().split()]
        yield Process(child.pid), stack
        child.stdin.close()


def taken(process: Process, stack: list[int]) -> Profile:
    header = Header(process_name=process.name, pid=process.pid, version="1.0")
    mappings = mappings_of(process.maps(), lambda mapping: file_of(process, mapping))
    return Profile(header, mappings, [Sample.of(stack, 4, 4096, 4000, 1)])


def test_each_frame_has_its_function_and_line(process: tuple[Process, list[int]]) -> None:
    profile = taken(*process)
    name_addresses(profile, Sources.of_process(process[0]))
    frames = Labels(profile).frames(profile.samples[0].stack)
    found = [(frame.function, frame.line) for frame in frames if Path(frame.file).name == "stack.c"]
    assert found == LINES


def test_pprof_names_a_profile_without_names(
    process: tuple[Process, list[int]], pprof_tool: Path, tmp_path: Path
) -> None:
    """By the mappings in the file: they are those of the process.  Go's pprof reads DWARF by itself, and
    does not find main, in .text.startup."""
    path = tmp_path / "x.pb.gz"
    save(taken(*process), path, writer_of(path))
    step = captured(
        [pprof_tool, "-symbolize=local", "-traces", "-lines", path],
        check=True,
        timeout=200,
        env=os.environ | {"PPROF_TMPDIR": str(tmp_path)},
    )
    found = re.findall(r"(\w+) \S*stack\.c:(\d+)", step.stdout)
    assert [(name, int(line)) for name, line in found][:2] == LINES[:2], step.stdout


def test_the_file_is_named_when_the_process_has_ended(
    process: tuple[Process, list[int]], tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    save(taken(*process), path, writer_of(path))
    later = load(path)
    name_addresses(later, Sources())
    frames = Labels(later).frames(later.samples[0].stack)
    assert [frame.function for frame in frames[:3]] == [name for name, _ in LINES]
