"""Where the tool writes: devices, FIFOs and open descriptors are written into, links are followed, regular
files are replaced as a whole.  No test goes near a device that others use: nodes are made in its folder."""

import errno
import os
import resource
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hakmem.base.errors import HakmemError
from hakmem.base.files import Output, write_atomically
from hakmem.trace.file import Trace, write
from results import captured
from tool.conftest import Tool

NULL, FULL = (1, 3), (1, 7)  # device numbers of Linux
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make device nodes, or other owners")
NOBODY = 65534


@pytest.fixture(params=["record", "page", "export"])
def words(request: pytest.FixtureRequest, busy: subprocess.Popen[str], run: Path) -> list[str]:
    """Every command that writes a file, up to the file's name."""
    return {
        "record": ["record", str(busy.pid), "--for", "500ms", "--every", "50ms", "-o"],
        "page": ["record", str(run), "-o"],
        "export": ["export", "--detail", "counters"],
    }[str(request.param)]


def begins_right(words: list[str], text: str) -> bool:
    """Whether it is what the command writes, from its first character on."""
    begins = {"record": "<!" if words[1].endswith(".json") else '{"format"', "export": "# HELP"}
    return text.startswith(begins[words[0]])


def node(path: Path, numbers: tuple[int, int]) -> Path:
    """A device node; skips where the machine does not let us make, or use, one."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(*numbers))
        path.open("wb").close()
    except PermissionError:
        pytest.skip("this container, or the temporary folder's mount, has no device nodes")
    return path


@NEEDS_ROOT
def test_devices_stay(words: list[str], tool: Tool, tmp_path: Path) -> None:
    path = node(tmp_path / "null", NULL)
    assert tool(*words, path).status == 0
    assert stat.S_ISCHR(path.stat().st_mode)


@NEEDS_ROOT
def test_a_full_device_is_told(words: list[str], tool: Tool, tmp_path: Path) -> None:
    path = node(tmp_path / "full", FULL)
    ended = tool(*words, path)
    assert ended.status == 1
    assert ended.stderr == f"hakmem: cannot write {path}: {os.strerror(errno.ENOSPC)}\n"
    assert os.path.lexists(path)
    assert stat.S_ISCHR(path.stat().st_mode)


def test_fifos_are_written_into(words: list[str], tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()))
    reader.start()
    ended = tool(*words, path)
    reader.join()
    assert ended.status == 0
    assert begins_right(words, got[0])
    assert stat.S_ISFIFO(path.lstat().st_mode)


@pytest.mark.long("2 seconds of recording each")
@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output(words: list[str], name: str, tool: Tool, tmp_path: Path) -> None:
    """Nothing else is printed there."""
    step = captured([tool.path, *words, name], cwd=tmp_path, check=True, timeout=60)
    assert begins_right(words, step.stdout)
    assert "\nwrote " not in step.stdout
    assert "samples over" not in step.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_what_a_shell_appends_to_is_kept(name: str, run: Path, tool: Tool, tmp_path: Path) -> None:
    """>> of the shell: opened anew it would be cut, replaced it would be another file."""
    path = tmp_path / "log"
    path.write_text("first\n")
    with path.open("ab") as file:
        subprocess.run([tool.path, "record", run, "-o", name], stdout=file, check=True, timeout=60)
    assert path.read_text().startswith("first\n<!")


def test_links_are_followed(words: list[str], tool: Tool, tmp_path: Path) -> None:
    folder, target = tmp_path / "folder", tmp_path / "folder" / "target"
    folder.mkdir()
    target.write_text("old")
    (tmp_path / "link").symlink_to("folder/middle")
    (folder / "middle").symlink_to("target")
    old = target.stat().st_ino
    assert tool(*words, tmp_path / "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert (folder / "middle").is_symlink()
    assert begins_right(words, target.read_text())
    assert target.stat().st_ino != old, "replaced as a whole, not written over"
    assert sorted(path.name for path in folder.iterdir()) == ["middle", "target"]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", "text")
    assert (tmp_path / "target").read_text() == "text"


@pytest.fixture(
    params=["trace PID --for 100ms -o", "trace PID --sampled --for 100ms -o", "run -o", "trace FILE -o"]
)
def tracing(
    request: pytest.FixtureRequest, busy: subprocess.Popen[str], traced: Path
) -> Callable[[Path], list[str]]:
    """Every command that writes a trace, to this file."""
    line = str(request.param).replace("PID", str(busy.pid)).replace("FILE", str(traced))
    return lambda path: [*line.split(), str(path), *(["--", "true"] if line == "run -o" else [])]


def test_a_trace_replaces_no_other_kind_of_file(
    tracing: Callable[[Path], list[str]], tool: Tool, tmp_path: Path
) -> None:
    path = tmp_path / "fifo.hkt"
    os.mkfifo(path)
    ended = tool(*tracing(path))
    assert (ended.status, ended.stderr) == (1, f"hakmem: cannot write {path}: not a regular file\n")
    assert [stat.S_ISFIFO(one.lstat().st_mode) for one in tmp_path.iterdir()] == [True]


def test_a_trace_follows_links(tracing: Callable[[Path], list[str]], tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "link.hkt"
    path.symlink_to("target.hkt")
    assert tool(*tracing(path)).status == 0
    assert path.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.hkt", "target.hkt"]


def test_a_trace_whose_file_cannot_be_made(tmp_path: Path) -> None:
    path, trace = tmp_path / "x.hkt", Trace({}, lambda: iter(()), 0, {"end": ""}, None)
    for taken in (tmp_path / "x.hkt.new", path):  # as another user's in a folder with the sticky bit
        taken.mkdir()
        with pytest.raises(HakmemError, match=f"cannot write {taken}: Is a directory"):
            write(path, trace)
        taken.rmdir()
    assert list(tmp_path.iterdir()) == []


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(HakmemError, match="cannot write .*one: .*symbolic links"):
        write_atomically(tmp_path / "one", "text")


def test_mode_stays_and_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write_atomically(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_atomically(path, "again")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def as_nobody(work: Callable[[], object]) -> int:
    """Its exit status in a child of another user: 0 when it returned, 1 after a HakmemError."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            status = 0
        except HakmemError:
            status = 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users reach: pytest's own are closed to them."""
    folder = Path("/tmp") / f"hakmem-output-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o755)
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@NEEDS_ROOT
@pytest.mark.parametrize("name", ["none", "closed"])
def test_what_may_not_be_written_is_told(open_folder: Path, name: str) -> None:
    (open_folder / "closed").write_text("old")
    assert as_nobody(lambda: Output(open_folder / name)) == 1
    assert (open_folder / "closed").read_text() == "old"


def too_long(limit_bytes: int, work: Callable[[], None]) -> str:
    """The error of writing beyond a limit on the size of files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        with pytest.raises(HakmemError) as caught:
            work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return str(caught.value)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    said = too_long(1000, lambda: write_atomically(path, "x" * 5000))
    assert said == f"cannot write {path}: {os.strerror(errno.EFBIG)}"
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_pieces_are_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write() -> None:
        with Output(path) as output:
            for _ in range(10):
                output.write("x" * 299 + "\n")

    too_long(1000, write)
    assert path.read_text() == ("x" * 299 + "\n") * 3


def test_a_page_does_not_replace_its_recording(run: Path, tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    path.write_bytes(run.read_bytes())
    (tmp_path / "link").symlink_to(path)
    for arguments in ([path], [run, "-o", run], [path, "-o", tmp_path / "link"]):
        ended = tool("record", *arguments)
        assert (ended.status, "would overwrite the recording" in ended.stderr) == (1, True)
    assert path.read_bytes() == run.read_bytes()


def test_recording_from_standard_input(run: Path, tool: Tool) -> None:
    with run.open("rb") as file:
        step = subprocess.run(
            [tool.path, "record", "-", "-o", "-"], stdin=file, capture_output=True, check=True, timeout=60
        )
    assert step.stdout.startswith(b"<!")


def test_a_signal_while_writing_leaves_nothing_beside(tmp_path: Path) -> None:
    """SIGTERM as soon as there is a file beside: the old content stays, alone."""
    path = tmp_path / "file"
    path.write_text("old")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            while True:
                write_atomically(path, "x" * 10_000_000)
        finally:
            os._exit(0)
    while not any(entry.name.startswith(".hakmem-") for entry in tmp_path.iterdir()):
        os.sched_yield()
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
