"""`hakmem run --profile`: from the first malloc to the last state, however the program ends."""

import os
import re
import signal
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hakmem.base.errors import ExitCode
from hakmem.launch.profiling import HELD_MIN_BYTES, SAMPLES_MIN, Profiling
from hakmem.profile.files import load
from hakmem.profile.model import Mode, Profile
from results import Compile
from tool.conftest import Tool
from tool.processes import begun, wait_until

KEPT_BYTES = 8192 * 1000
HELD_BYTES = 16384 * 4000
EXACT = 1.2  # classes are larger than requests; the rest is the program's own
FINE = ("--period", "4096")
# How it ends, its status.
ENDS = {
    "return": 0,
    "exit": 3,
    "_exit": 4,
    "killed": -signal.SIGKILL,
    "terminated": -signal.SIGTERM,
    "aborts": -signal.SIGABRT,
    "crashes": -signal.SIGSEGV,
    "executes-another": 0,
}
SAID_LIVE = re.compile(r": ([\d.]+) MiB live then")


@pytest.fixture(scope="session")
def ends(compiled: Compile) -> Path:
    return compiled("ends", "-g")


def bytes_of(profile: Profile, function: str) -> float:
    """The bytes that samples of stacks with this function stand for."""

    def has(stack: tuple[int, ...]) -> bool:
        return any(
            frame.function == function for address in stack for frame in profile.names.get(address, ())
        )

    return sum(sample.weight_bytes for sample in profile.shown if has(sample.stack))


def live_bytes(profile: Profile) -> int:
    return sum(one.live_bytes for one in profile.classes)


def profiled(tool: Tool, *arguments: str | Path) -> AbstractContextManager[subprocess.Popen[str]]:
    return begun("run", "--profile", *arguments, HAKMEM_LIBRARY=str(tool.library))


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.long("a second each", keep=1)
@pytest.mark.parametrize("how", ENDS)
def test_the_last_state_is_kept(tool: Tool, ends: Path, tmp_path: Path, how: str) -> None:
    """It ends just after its last malloc: no reading but the last can have all of it."""
    ended = tool("run", "-o", tmp_path / "x.json", *FINE, "--", ends, how)
    assert ended.status == ENDS[how], ended.stderr
    assert re.search(r"/x\.json: \S+ \(PID \d+\) \w+", ended.stderr), ended.stderr
    assert "its memory was gone" not in ended.stderr
    profile = load(tmp_path / "x.json")
    assert KEPT_BYTES <= live_bytes(profile) < EXACT * KEPT_BYTES
    assert bytes_of(profile, "keeps") > 0.9 * KEPT_BYTES
    assert not profile.header.comments
    assert bytes_of(load(tmp_path / "x.peak.json"), "keeps") > 0.9 * KEPT_BYTES


@pytest.mark.long("2 seconds of processor time")
def test_the_peak_is_a_profile_of_its_own(tool: Tool, ends: Path, tmp_path: Path) -> None:
    """The program goes on when the condition's profile is there: so the peak has been read, too."""
    words = ("-o", tmp_path / "x.pb.gz", "--when", "live>60M", *FINE, "--", ends, "held")
    with profiled(tool, *words) as process:
        assert line_of(process) == "held"
        wait_until((tmp_path / "x.when.pb.gz").exists, "the condition never came true")
        _, said = process.communicate("\n", timeout=60)
    assert process.returncode == 0, said
    assert re.search(r"met live>60M: RSS [\d.]+ MiB, [\d.]+ MiB live", said)
    for word in ("peak", "when"):
        assert bytes_of(load(tmp_path / f"x.{word}.pb.gz"), "holds") > 0.9 * HELD_BYTES
    assert load(tmp_path / "x.peak.pb.gz").header.mode is Mode.PEAK
    last = load(tmp_path / "x.pb.gz")
    assert bytes_of(last, "holds") < 0.1 * HELD_BYTES
    assert bytes_of(last, "keeps") > 0.9 * KEPT_BYTES


@pytest.mark.long("2 seconds of processor time")
def test_a_condition_of_rss(tool: Tool, ends: Path, tmp_path: Path) -> None:
    with profiled(tool, "-o", tmp_path / "x.json", "--when", "rss>50M", *FINE, "--", ends, "held") as process:
        assert line_of(process) == "held"
        wait_until((tmp_path / "x.when.json").exists, "the condition never came true")
        process.communicate("\n", timeout=60)
    assert not list(tmp_path.glob("x.when2*"))


@pytest.mark.long("a second of processor time")
def test_what_a_program_was_before_exec_is_kept(tool: Tool, ends: Path, tmp_path: Path) -> None:
    ended = tool("run", "-o", tmp_path / "x.json", *FINE, "--", ends, "executes")
    assert ended.status == 3, ended.stderr
    for name in ("x.json", "x.exec1.json"):
        assert bytes_of(load(tmp_path / name), "keeps") > 0.9 * KEPT_BYTES
    assert "executed" in ended.stderr


def test_a_shell_that_executes_it(tool: Tool, ends: Path, tmp_path: Path) -> None:
    script = f'exec "{ends}" killed'
    ended = tool("run", "-o", tmp_path / "x.json", *FINE, "--", "sh", "-c", script)
    assert ended.status == -signal.SIGKILL, ended.stderr
    assert bytes_of(load(tmp_path / "x.json"), "keeps") > 0.9 * KEPT_BYTES


def test_other_processes_are_told_of(tool: Tool, ends: Path, tmp_path: Path) -> None:
    ended = tool("run", "-o", tmp_path / "x.json", *FINE, "--", "sh", "-c", f"'{ends}'; exit 5")
    assert ended.status == 5, ended.stderr
    assert "not profiled; with %p in the file's name" in ended.stderr
    assert load(tmp_path / "x.json").header.process_name == "sh"


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("how", ["forks", "return"])
def test_each_process_has_a_file(tool: Tool, ends: Path, tmp_path: Path, how: str) -> None:
    script = f"'{ends}' {how}; exit 5"
    ended = tool("run", "-o", tmp_path / "x.%p.json", *FINE, "--", "sh", "-c", script)
    assert ended.status == 5, ended.stderr
    profiles = [load(path) for path in tmp_path.glob("x.*.json") if re.fullmatch(r"x\.\d+\.json", path.name)]
    kept = sorted(round(bytes_of(one, "keeps") / KEPT_BYTES) for one in profiles)
    assert [count for count in kept if count] == ([1, 2] if how == "forks" else [1])


def test_without_a_file_the_tables_are_shown(tool: Tool, ends: Path) -> None:
    ended = tool("run", "--profile", *FINE, "--", ends)
    assert ended.status == 0
    assert ended.stdout == "", "standard output is the program's"
    assert "Live blocks at the peak, by site" in ended.stderr
    assert "Live blocks by site" in ended.stderr
    assert "keeps (ends.c:" in ended.stderr


def test_all_that_was_allocated(tool: Tool, ends: Path, tmp_path: Path) -> None:
    ended = tool("run", "--of", "allocated", "-o", tmp_path / "x.pb.gz", *FINE, "--", ends, "exit")
    assert ended.status == 3
    assert load(tmp_path / "x.pb.gz").header.mode is Mode.ALLOCATED
    assert not (tmp_path / "x.peak.pb.gz").exists()


@pytest.mark.long("a second of processor time")
def test_signals_are_sent_on_and_the_end_is_its_own(tool: Tool, ends: Path, tmp_path: Path) -> None:
    with profiled(tool, "-o", tmp_path / "x.json", *FINE, "--", ends, "waits") as process:
        assert line_of(process) == "waits"
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)  # before standard input ends, which ends the program, too
        _, said = process.communicate()
    assert process.returncode == -signal.SIGTERM, said
    assert "was killed by signal 15 (Terminated)" in said
    assert bytes_of(load(tmp_path / "x.json"), "keeps") > 0.9 * KEPT_BYTES


def test_it_is_the_programs_keeper_that_ends_with_it(tool: Tool, ends: Path, tmp_path: Path) -> None:
    """Nothing is left: no process, no folder."""
    ended = tool("run", "-o", tmp_path / "x.json", "--", ends, TMPDIR=str(tmp_path))
    assert ended.status == 0, ended.stderr
    assert not list(tmp_path.glob("hakmem-run-*"))
    wait_until(lambda: not keepers_of(ends), "a keeper stays")


def pids_of(program: Path) -> list[str]:
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            if (one / "exe").readlink() == program:
                found.append(one.name)
        except OSError:
            continue
    return found


def keepers_of(program: Path) -> list[str]:
    def is_keeper(pid: str) -> bool:
        try:
            return Path(f"/proc/{pid}/comm").read_text() == "hakmem-keeper\n"
        except OSError:
            return False

    return [pid for pid in pids_of(program) if is_keeper(pid)]


@pytest.mark.long("2 seconds of processor time")
def test_without_its_keeper_the_last_reading_is_written(tool: Tool, ends: Path, tmp_path: Path) -> None:
    """As when the OOM killer comes: it ends both."""
    words = ("-o", tmp_path / "x.json", "--when", "live>7M", *FINE, "--", ends, "waits")
    with profiled(tool, *words) as process:
        assert line_of(process) == "waits"
        wait_until((tmp_path / "x.when.json").exists, "the condition never came true")
        (keeper,) = wait_until(lambda: keepers_of(ends), "no keeper")
        os.kill(int(keeper), signal.SIGKILL)
        (program,) = wait_until(lambda: [pid for pid in pids_of(ends) if pid != keeper], "no program")
        os.kill(int(program), signal.SIGKILL)
        process.wait(timeout=60)
        _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert re.search(r"its memory was gone: read .* before, [\d.]+ MiB live then", said), said
    profile = load(tmp_path / "x.json")
    assert bytes_of(profile, "keeps") > 0.9 * KEPT_BYTES
    assert any("before the program's end" in comment for comment in profile.header.comments)


@pytest.mark.long("a second of processor time")
def test_a_static_program_is_read_while_it_runs(
    tool: Tool, static_lib: Path, compiled: Compile, tmp_path: Path
) -> None:
    """It has no keeper. Looking for one once began anew with each malloc."""
    program = compiled("ends", "-static", static_lib)
    words = ("-o", tmp_path / "x.json", "--when", "live>7M", *FINE, "--", program, "waits")
    with profiled(tool, *words) as process:
        assert line_of(process) == "waits"
        wait_until((tmp_path / "x.when.json").exists, "the condition never came true")
        _, said = process.communicate("\n", timeout=60)
    assert process.returncode == 0
    assert "warning" not in said
    assert "its memory was gone: read" in said
    assert live_bytes(load(tmp_path / "x.json")) >= KEPT_BYTES


@pytest.mark.long("2 seconds of processor time")
def test_keepers_are_no_processes_of_their_own(tool: Tool, ends: Path, tmp_path: Path) -> None:
    with profiled(tool, "-o", tmp_path / "x.json", "--", ends, "waits") as process:
        assert line_of(process) == "waits"
        (keeper,) = wait_until(lambda: keepers_of(ends), "no keeper")
        listed = [line["pid"] for line in tool.json("ps")["processes"]]
        assert int(keeper) not in listed
        assert {int(pid) for pid in pids_of(ends)} - {int(keeper)} <= set(listed)
        process.communicate("\n", timeout=60)


# ---- bad input --------------------------------------------------------------------------------------------

REFUSED = [
    (["-o", "/none/x.pb.gz"], "no such directory: /none"),
    (["-o", "x.xyz"], "tells no format"),
    (["--when", "rss>"], "is not a condition"),
    (["--when", "cpu>80%"], "is not a condition"),
    (["--when", "rss>5X"], "is not a condition"),
    (["--when", "rss>80"], "is not a condition"),
    (["--when", "rss>0%"], "is always true, or never: there are"),
    (["--when", "live>100000G"], "is always true, or never: there are"),
    (["--env", "HAKMEM_PROFILE=never"], "sets HAKMEM_PROFILE itself"),
]


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_bad_input_is_told_before_the_start(tool: Tool, tmp_path: Path, words: list[str], why: str) -> None:
    ended = tool("run", "--profile", *words, "--", "touch", tmp_path / "ran")
    assert ended.status in (ExitCode.FAILED, ExitCode.USAGE)
    assert why in ended.stderr
    assert not (tmp_path / "ran").exists()


def test_options_of_profiles_need_profile(tool: Tool) -> None:
    assert "--when needs --profile" in tool("run", "--when", "rss>50%", "--", "true").stderr


def test_options_behind_the_program_are_its_own(tool: Tool) -> None:
    assert tool("run", "echo", "-o", "x", "--profile").stdout == "-o x --profile\n"


def test_what_cannot_be_run(tool: Tool, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(Path("/bin/true").read_bytes().replace(b"/lib64/ld-linux", b"/lib64/no-linux"))
    broken.chmod(0o755)
    ended = tool("run", "-o", tmp_path / "x.json", "--", broken)
    assert ended.status == 126
    assert ended.stderr.count("hakmem:") == 1
    assert not (tmp_path / "x.json").exists()


def test_a_disk_that_is_full(tool: Tool, ends: Path, tmp_path: Path) -> None:
    """The samples are kept elsewhere, and the program's status stays."""
    full = tmp_path / "x.pb.gz"
    full.symlink_to("/dev/full")
    ended = tool("run", "-o", full, "--", ends, "exit", TMPDIR=str(tmp_path))
    assert ended.status == 3
    kept = re.search(r"No space left on device; the profile is in (\S+)", ended.stderr)
    assert kept, ended.stderr
    assert load(Path(kept[1])).header.pid


def test_an_older_library(tool: Tool, compiled: Compile, tmp_path: Path) -> None:
    """A library of another format: the program runs, and a message says why nothing was written."""
    other = compiled("other_format", "-DFORMAT=2", "-shared", "-fPIC")
    ended = tool("run", "-o", tmp_path / "x.json", "--", "sleep", "3", HAKMEM_LIBRARY=str(other))
    assert ended.status == 0, ended.stderr
    assert "no profile of PID" in ended.stderr
    assert not (tmp_path / "x.json").exists()


# ---- a chain of programs: which of the files is the one that was meant -----------------------------------


@dataclass
class Written:
    """Results that are only remembered."""

    words: list[tuple[str, str]] = field(default_factory=list)

    def write_all_of(self, program: Any, _mode: object, word: str = "") -> None:  # noqa: ANN401
        self.words.append((program.title, word))

    def names_of(self, program: Any, word: str) -> list[str]:  # noqa: ANN401
        return [f"x.{program.pid}{'.' * bool(word)}{word}.pb.gz"]


def image(
    title: str, samples: int, ran_s: float, pid: int = 7, held_bytes: int = 4 * HELD_MIN_BYTES
) -> SimpleNamespace:
    """A program that a process was."""
    taken = SimpleNamespace(live_bytes=held_bytes)
    return SimpleNamespace(
        title=title, sample_count=samples, ran_s=ran_s, pid=pid, latest=taken, peak=None,
        ended=f"executed what followed {title}",
    )  # fmt: skip


def test_a_shim_has_no_file_and_the_longest_one_is_named() -> None:
    said: list[str] = []
    results = Written()
    profiling = Profiling(
        cast(Any, SimpleNamespace(pid=7)), cast(Any, None), cast(Any, SimpleNamespace(mode="live")),
        cast(Any, results), said.append,
    )  # fmt: skip
    shim, tool = image("bash", SAMPLES_MIN - 1, 0.1), image("loader", SAMPLES_MIN, 2.0)
    silent, last = image("env", 0, 0.1), image("python3", 3, 30.0)
    finely = image("pyenv", 10 * SAMPLES_MIN, 0.4, held_bytes=HELD_MIN_BYTES // 3)
    profiling.done = {
        7: cast(Any, [shim, finely, silent, tool, last]),
        8: cast(Any, [image("sh", 5, 0.2, pid=8)]),
    }
    for pid in (8, 7):
        profiling._write(pid)
    assert results.words == [("sh", ""), ("loader", "exec1"), ("python3", "")]
    profiling._sum_up()
    assert said == [
        "bash (PID 7) executed what followed bash after 100 ms: 9 samples, no profile of it",
        "pyenv (PID 7) executed what followed pyenv after 400 ms: 100 samples, no profile of it",
        "python3 (PID 7) ran longest, 30 s; its profile is x.7.pb.gz",
    ]


def test_one_file_needs_no_summary(tool: Tool, ends: Path, tmp_path: Path) -> None:
    script = f'exec "{ends}" exit'
    ended = tool("run", "-o", tmp_path / "x.%p.json", "--", "sh", "-c", script)
    assert ended.status == 3
    assert "ran longest" not in ended.stderr
    assert not list(tmp_path.glob("*.exec*"))


def test_a_chain_of_programs_that_were_sampled(tool: Tool, ends: Path, tmp_path: Path) -> None:
    ended = tool("run", "-o", tmp_path / "x.%p.json", *FINE, "--", ends, "executes")
    assert ended.status == 3, ended.stderr
    said = re.search(r"hakmem: \S+ \(PID (\d+)\) ran longest, .*; its profile is (\S+)\n", ended.stderr)
    assert said, ended.stderr
    assert Path(said[2]).name in (f"x.{said[1]}.json", f"x.{said[1]}.exec1.json")
    assert Path(said[2]).is_file()
