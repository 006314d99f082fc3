"""Programs that are run again and again are one file, whose paths (/proc/PID/root) come and go."""

from collections.abc import Callable
from pathlib import Path

from hakmem.profile.live import read_profile
from hakmem.profile.names import Sources, name_addresses
from hakmem.target.elf import open_elf
from hakmem.target.target import open_process
from tool.processes import running

PROGRAM = Path(__file__).parent / "programs" / "asked.c"


def test_a_file_has_the_path_that_is_there(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    program, old, new = compile_c(PROGRAM), tmp_path / "old", tmp_path / "new"
    for name in (old, new):
        name.hardlink_to(program)
    first = open_elf(old)
    old.unlink()
    second = open_elf(new)
    assert second is first
    assert second is not None
    assert second.name == str(new)


def test_lines_of_a_second_process(lib: Path, compile_c: Callable[..., Path]) -> None:
    """After the first has ended."""
    for _ in range(2):
        with running([compile_c(PROGRAM)], lib, {"HAKMEM_PROFILE": "64"}) as process:
            target = open_process(process.pid)
            assert target.process is not None
            profile = read_profile(target, with_counts=False)
            name_addresses(profile, Sources.of_process(target.process))
        frames = [frame for at in profile.names.values() for frame in at if frame.function.startswith("ask_")]
        assert frames
        assert all(frame.file.endswith("asked.c") and frame.line for frame in frames), frames
