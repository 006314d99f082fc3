"""The samples of `hakmem record` are kept, whatever ends it; a recording is read as far as it was written."""

import collections
import contextlib
import fcntl
import itertools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import cast

import pytest
from hakmem.base import files as files_module
from hakmem.base import signals
from hakmem.base.errors import HakmemError
from hakmem.base.files import Output
from hakmem.base.signals import Stopped, stoppable
from hakmem.target.target import Target
from hakmem.views import recording
from hakmem.views.recording import ENDED_BY_USER, ENDED_CUT, ENDED_IN_TIME, Recording, record
from results import captured
from tool.forked import tool_environment
from tool.processes import TOOL, begun, hakmem, wait_until

PIPE_BYTES = 1 << 20  # all that is written fits


RECORDS = ("--for", "60s", "--every", "20ms", "-o")


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_signals(busy: subprocess.Popen[str], tmp_path: Path, name: str) -> None:
    path, number = tmp_path / "run.json", signal.Signals[name]
    path.write_text("an old recording")
    with begun("record", busy.pid, *RECORDS, path) as process:
        wait_until(lambda: lines_of(path) > 5, "the recorder does not begin")
        seen = lines_of(path)
        process.send_signal(number)
        said, errors = process.communicate(timeout=60)
    assert process.returncode == (0 if number == signal.SIGINT else -number)
    assert errors == ""
    assert (ENDED_BY_USER in said) == (number == signal.SIGINT)
    recording = Recording.read(path)
    assert len(recording.samples) >= seen - 2
    expected = {signal.SIGINT: ENDED_BY_USER, signal.SIGKILL: ENDED_CUT}
    assert recording.ended == expected.get(number, f"stopped by {name}")
    assert list(tmp_path.iterdir()) == [path]
    hakmem("record", path)


@pytest.mark.long("7 seconds of signals each")
@pytest.mark.parametrize("kind", ["file", "fifo"])
def test_a_signal_between_any_two_instructions(
    kind: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No sample is lost that was written, none is there twice, and what follows is the end or nothing."""
    whole, path = Recording.read(run), tmp_path / "run.json"
    taken = [replace(sample, classes=[], counters={}, totals={}) for sample in whole.samples[:2]]
    monkeypatch.setattr(recording, "samples", lambda *_: iter(taken))
    monkeypatch.setattr(Recording, "of", lambda *_: replace(whole, samples=[], meta={}))
    ends = collections.Counter[str]()

    def work() -> None:
        with stoppable(), Output(path) as output:
            record(cast("Target", None), 1.0, 1.0, output, lambda *_: None)

    for number in itertools.count():
        with writable(path, kind) as text, stoppable():
            is_whole = is_through(number, work)
            written = text()
        path.unlink(missing_ok=True)
        if written:
            path.write_text(written)
            found = Recording.read(path)
            assert "\0" not in written, number  # a hole, where a piece was taken back
            assert found.samples == taken[: len(found.samples)], number
            ends[found.ended] += 1
            path.unlink()
        if is_whole:
            break
    assert set(ends) == {ENDED_IN_TIME, ENDED_CUT, "stopped by SIGTERM"}, ends
    assert ends[ENDED_CUT] < ends["stopped by SIGTERM"]


@contextmanager
def writable(path: Path, kind: str) -> Iterator[Callable[[], str]]:
    """A file, or a FIFO with a reader; what was written."""
    if kind == "file":
        yield lambda: path.read_text() if path.exists() else ""
        return
    os.mkfifo(path)
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    held = os.open(path, os.O_WRONLY)  # so that an empty one is not at its end
    os.write(held, b"\n")
    yield lambda: os.read(file, PIPE_BYTES).decode()[1:]
    os.close(held)
    os.close(file)


def is_through(number: int, work: Callable[[], None]) -> bool:
    """SIGTERM comes after that many instructions of the code that writes recordings; false if it came."""
    left = number
    files = {module.__file__ for module in (recording, files_module, signals, contextlib)}

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event in ("opcode", "line"):  # Python 3.12 tells of lines alone
            left -= 1
            if left == -1:
                signal.raise_signal(signal.SIGTERM)
        return trace

    sys.settrace(trace)
    try:
        work()
    except Stopped:
        pass
    finally:
        sys.settrace(None)
    return left >= 0


def test_a_hangup_that_is_ignored(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    """nohup hakmem record …"""
    path = tmp_path / "run.json"
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    with begun("record", busy.pid, *RECORDS, path, preexec_fn=ignore) as process:
        wait_until(lambda: lines_of(path) > 2, "the recorder does not begin")
        process.send_signal(signal.SIGHUP)
        seen = lines_of(path)
        wait_until(lambda: lines_of(path) > seen + 3, "it ended")
        process.kill()


def test_nothing_is_replaced_before_there_is_a_sample(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("an old recording")
    hakmem("record", os.getpid(), "-o", path, status=1)  # this Python does not run on hakmem
    assert path.read_text() == "an old recording"


def is_kept(process: subprocess.Popen[str], path: Path) -> None:
    """The recorder said that there is no room, and all samples before can be read."""
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith(f"hakmem: cannot write {path}: ")
    assert len(errors.splitlines()) == 1
    recording = Recording.read(path)
    assert recording.samples
    assert f"; {len(recording.samples)} sample" in errors
    assert path.read_bytes().endswith(b"}\n"), "no piece of a line is left"


def test_a_limit_on_the_size_of_files(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # noqa: E731
    with begun("record", busy.pid, *RECORDS, path, preexec_fn=limit) as process:
        is_kept(process, path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    words = ["mount", "-t", "tmpfs", "-o", "size=128k", "hakmem-test", str(tmp_path)]
    mounted = captured(words)
    if mounted.returncode:
        pytest.skip(f"mount is refused here: {mounted.stderr.strip()}")
    try:
        with begun("record", busy.pid, *RECORDS, tmp_path / "run.json") as process:
            is_kept(process, tmp_path / "run.json")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_reader_that_leaves_ends_it(busy: subprocess.Popen[str]) -> None:
    words = " ".join([*TOOL, "record", str(busy.pid), "--every", "20ms", "-o", "-"])
    step = captured(
        ["bash", "-c", f"{words} | head -n 1; echo ${{PIPESTATUS[0]}}"],
        env=tool_environment(),
        timeout=60,
        check=True,
    )
    assert step.stdout.splitlines()[-1] == str(128 + signal.SIGPIPE)
    assert step.stderr == ""


# ---- reading ----------------------------------------------------------------------------------------


@pytest.mark.long("a second of processor time")
def test_cut_anywhere(run: Path, tmp_path: Path) -> None:
    """Every length is read up to its last whole line; without a whole header it is not a recording."""
    data, path = run.read_bytes(), tmp_path / "cut.json"
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    near = {end + step for end in ends for step in range(-3, 3)}
    for length in sorted({*range(0, len(data), 997), *near, len(data)} & set(range(len(data) + 1))):
        path.write_bytes(data[:length])
        whole = sum(end <= length for end in ends)
        if whole == 0 and length != ends[0] - 1:
            with pytest.raises(HakmemError, match=r"is not JSON|is no recording"):
                Recording.read(path)
            continue
        recording = Recording.read(path)
        assert len(recording.samples) == min(max(whole, 1) - 1, len(ends) - 2)
        assert recording.ended == (ENDED_IN_TIME if whole == len(ends) else ENDED_CUT)


def test_zeros_after_a_power_failure(run: Path, tmp_path: Path) -> None:
    """Some file systems keep the length of what they lost."""
    path = tmp_path / "zeros.json"
    lines = run.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + bytes(5000))
    assert len(Recording.read(path).samples) == 2


def test_a_damaged_line_is_named_with_what_can_be_kept(run: Path, tmp_path: Path) -> None:
    lines = run.read_bytes().splitlines(keepends=True)
    path = tmp_path / "damaged.json"
    for wrong, why in (
        (lines[2].replace(b'"monotonic_s"', b'"monotonous"'), "monotonic_s"),
        (lines[2].replace(b'"pid":', b'"pid":"x","p":'), "pid has an invalid value"),
        (lines[2].replace(b'"time_s":', b'"time_s":1e999,"t":'), "time_s has an invalid value"),
        (lines[2].replace(b'"time_s":', b'"time_s":NaN,"t":'), "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b"[]\n", "not a sample"),
        (lines[0], "is missing"),
        (b"\0\0\0\n", "not JSON"),
    ):
        path.write_bytes(b"".join([*lines[:2], wrong, *lines[3:]]))
        with pytest.raises(HakmemError) as caught:
            Recording.read(path)
        assert f"{path} is damaged in line 3: " in str(caught.value)
        assert why in str(caught.value)
        assert "head -n 2 " in str(caught.value)
        kept = tmp_path / "kept.json"
        kept.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
        assert len(Recording.read(kept).samples) == 1


def test_lines_after_the_end_are_told(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_bytes(run.read_bytes() * 2)
    with pytest.raises(HakmemError, match="data after the end"):
        Recording.read(path)
