"""`hakmem record`: samples at a steady pace, kept whatever ends the recording; and durations."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hakmem.base.durations import duration_text, parse_duration_s
from hakmem.views.recording import ENDED_IN_TIME, ENDED_WITH_PROCESS, THREADS_KEPT, Recording
from tool.processes import begun, hakmem, running, wait_until
from tool.recordings import write


@pytest.fixture(scope="module")
def recorded(busy: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of it."""
    path = tmp_path_factory.mktemp("record") / "run.json"
    step = hakmem("record", busy.pid, "--for", "1s", "--every", "100ms", "-o", path)
    assert f"hakmem record {path}" in step.stdout
    return path


def test_a_recording(busy: subprocess.Popen[str], recorded: Path) -> None:
    recording = Recording.read(recorded)
    times = [sample.monotonic_s for sample in recording.samples]
    assert recording.pid == busy.pid
    assert recording.ended == ENDED_IN_TIME
    assert 2 <= len(times) <= 11
    assert times == sorted(times)
    assert recording.samples[0].detail == "full"


def test_counters_never_fall_and_come_with_their_meaning(recorded: Path) -> None:
    recording = Recording.read(recorded)
    refills = [sample.counters["refills"] for sample in recording.samples]
    assert refills == sorted(refills)
    assert refills[-1] > refills[0]
    assert recording.meta["refills"].role == "counter"
    assert "magazine" in recording.meta["refills"].meaning


def test_what_is_read_is_what_was_written(recorded: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    write(Recording.read(recorded), again)
    assert again.read_text() == recorded.read_text()


def test_many_threads_do_not_swell_the_file(recorded: Path, tmp_path: Path) -> None:
    recording, path = Recording.read(recorded), tmp_path / "crowd.json"
    sample = recording.samples[0]
    thread = sample.threads[0]
    recording.samples = [replace(sample, threads=[thread] * 500)]
    write(recording, path)
    kept = Recording.read(path).samples[0].threads
    assert len(kept) == THREADS_KEPT
    assert sum(item.cached_bytes for item in kept) == 500 * thread.cached_bytes


@pytest.mark.long("a second of processor time")
def test_process_that_ends(lib: Path, busy_program: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    words = ("--for", "1h", "--every", "50ms", "-o", path)
    with running([busy_program], lib) as process, begun("record", process.pid, *words) as recorder:
        wait_until(path.exists, "the recorder does not begin", 60.0)
        process.kill()
        assert recorder.wait(timeout=60) == 0
    recording = Recording.read(path)
    assert recording.ended == ENDED_WITH_PROCESS
    assert recording.samples


def test_output_that_cannot_be_written_is_told_at_once(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    """Before anything is recorded."""
    step = hakmem("record", busy.pid, "--for", "1h", "-o", tmp_path / "none" / "run.json", status=1)
    assert "no such directory" in step.stderr


def test_a_page_at_once(busy: subprocess.Popen[str], tmp_path: Path) -> None:
    """The samples are in a file beside it until it is written, and stay there if it cannot be."""
    page = tmp_path / "x.html"
    words = ("--every", "50ms", "-o", page)
    hakmem("record", busy.pid, "--for", "300ms", *words)
    assert page.read_text().startswith("<!")
    assert [*tmp_path.iterdir()] == [page]
    assert "record for longer" in hakmem("record", busy.pid, "--for", "1ms", *words, status=1).stderr
    assert len(Recording.read(tmp_path / "x.html.part").samples) == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nosuch.json",), "neither a PID nor a recording"),
        (("/dev/null", "--for", "1s"), "a recording has its own"),
    ],
)
def test_arguments_that_do_not_fit(words: tuple[str, ...], complaint: str) -> None:
    assert complaint in hakmem("record", *words, status=2).stderr


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("no JSON", "is not JSON"),
        ("[]", "is not a recording"),
        ('{"format": "hakmem-run", "format_version": 99}', "has format 99"),
        ('{"format": "hakmem-run", "format_version": 1}', "has format 1"),
        ('{"format": "hakmem-run", "format_version": 2}', "is damaged"),
    ],
)
def test_files_that_are_no_recordings(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    assert complaint in hakmem("record", path, status=1).stderr


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("500ms", 0.5), ("1h30m", 5400), ("2", 2), ("1.5s", 1.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "5 apples", "-3s", "10x", "3s4", "1.s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; examples"):
        parse_duration_s(text)


@pytest.mark.parametrize(("option", "text"), [("--for", "soon"), ("--for", "0s"), ("--every", "1us")])
def test_wrong_durations_are_usage_errors(option: str, text: str, tmp_path: Path) -> None:
    assert text in hakmem("record", "1", "-o", tmp_path / "x", option, text, status=2).stderr


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (7.5, "7.5 s"), (60, "1 min"), (135, "2 min 15 s"), (7260, "2 h 1 min")],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
